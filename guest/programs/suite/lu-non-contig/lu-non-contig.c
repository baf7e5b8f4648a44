// lu-non-contig: blocked dense LU factorization (lu.h) of one global array, so
// that consecutive rows of a block are one row of the matrix apart.
#include "lu.h"

static double *matrix;

static pthread_mutex_t id_mutex = PTHREAD_MUTEX_INITIALIZER;
static long next_id;
static double rs, rf; // when the factorization started and finished

static double *block(long i, long j)
{
	return &matrix[i * side * n + j * side];
}

static void *work(void *unused)
{
	pthread_mutex_lock(&id_mutex);
	long id = next_id++;
	if (id == 0)
		rs = now_seconds();
	pthread_mutex_unlock(&id_mutex);

	factor(id);
	if (id == 0) {
		DELAY(30);
		rf = now_seconds(); // race: rf
	}
	return unused;
}

static void report_time(void)
{
	double finished = rf; // race: rf
	if (finished < rs)
		wrong("the factorization took from %f to %f", rs, finished);
}

int main(int argc, char **argv)
{
	read_sizes(argc, argv);
	stride = n;
	matrix = allocate(n * n, sizeof *matrix);

	pthread_t others[MAX_THREADS];
	for (long i = 1; i < threads; i++)
		start_thread(&others[i], work, NULL);
	DELAY(10);
	work(NULL);
#ifdef BUGGY
	report_time();
#endif
	for (long i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
#ifndef BUGGY
	report_time();
#endif

	check_solution();
	report();
	pthread_barrier_destroy(&barrier);
	free(matrix);
	return 0;
}
