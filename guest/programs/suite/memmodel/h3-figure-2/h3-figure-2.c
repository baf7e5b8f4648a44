// h3-figure-2: two numbers that increase together, and a flag that says that both
// have (figure 2 of H3, from the software of an electron microscope).
//
// In the buggy form the store to the flag may reach memory before those to the
// numbers, when stores to different addresses may be reordered (PSO).
#include "model.h"

enum { LOOKS = 40 }; // of the second thread, in each round

static long rounds = 100;
static struct word x, y, z;
static long unequal;
static pthread_barrier_t barrier;

static void count_up(void)
{
	store(&z.value, 0);
	store(&x.value, load(&x.value) + 1);
	store(&y.value, load(&y.value) + 1);
	order_stores();
	store(&z.value, 1);
}

static void look(void)
{
	for (int i = 0; i < LOOKS; i++)
		if (load(&z.value) == 1) {
			if (load(&x.value) + 1 != load(&y.value))
				unequal++;
			return;
		}
}

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		if (id == 0) {
			store(&x.value, 1);
			store(&y.value, 2);
			store(&z.value, 0);
		}
		pthread_barrier_wait(&barrier);
		if (id == 0)
			count_up();
		else
			look();
		pthread_barrier_wait(&barrier);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});
	pthread_barrier_init(&barrier, NULL, 2);

	run_threads(2, body);

	assert(unequal == 0);
	printf("h3-figure-2: %ld rounds, correct\n", rounds);
	return 0;
}
