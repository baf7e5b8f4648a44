// frost-figure-3: three threads, one order given by synchronization, one race.
//
// Thread A does a0 and, after a semaphore that C posts after c0, a1; B does b;
// C continues with c1. The program fails if b runs before a1. In the order A, B,
// C of whole threads A must wait, so b runs before a1; in the order C, B, A it
// does as well.
#include <semaphore.h>

#include "suite.h"

enum { WORK = 50000 }; // which makes it unlikely that b runs first

static sem_t c0_done;
static volatile long value = 1, sums[3];

#ifndef BUGGY
static sem_t a1_done;
#endif

// A: a0 and a1. B: b. C: c0 and c1.
static void body(long id)
{
	if (id == 0) {
		sums[0] = 1;
		sem_wait(&c0_done);
		DELAY(10);
		assert(value == 1); // race: value
#ifndef BUGGY
		sem_post(&a1_done);
#endif
	} else if (id == 1) {
#ifndef BUGGY
		sem_wait(&a1_done);
#endif
		for (int i = 0; i < WORK; i++)
			sums[1] = i;
		value = 0; // race: value
		sums[1] = 1;
	} else {
		sem_post(&c0_done);
		sums[2] = 1;
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){{0}});
	sem_init(&c0_done, 0, 0);
#ifndef BUGGY
	sem_init(&a1_done, 0, 0);
#endif

	run_threads(3, body);

	if (sums[0] + sums[1] + sums[2] != 3)
		wrong("a thread did not run");
	printf("frost-figure-3: correct\n");
	return 0;
}
