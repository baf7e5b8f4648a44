// lu-contig: blocked dense LU factorization (lu.h), each block contiguous in
// memory and all blocks of a thread together.
#include "lu.h"

static double **block_at; // by i * blocks + j

static double *block(long i, long j)
{
	return block_at[i * blocks + j];
}

// place_blocks gives each thread's blocks a piece of memory of their own.
static void place_blocks(double *memory)
{
	for (long id = 0; id < threads; id++)
		for (long i = 0; i < blocks; i++)
			for (long j = 0; j < blocks; j++)
				if (owner(i, j) == id) {
					block_at[i * blocks + j] = memory;
					memory += side * side;
				}
}

int main(int argc, char **argv)
{
	read_sizes(argc, argv);
	stride = side;
	double *memory = allocate(n * n, sizeof *memory);
	block_at = allocate(blocks * blocks, sizeof *block_at);
	place_blocks(memory);

	run_threads(threads, factor);

	check_solution();
	report();
	pthread_barrier_destroy(&barrier);
	free(block_at);
	free(memory);
	return 0;
}
