// frost-figure-1b: one thread tests a pointer and then dereferences it, another
// clears it in between.
//
// The program fails only if the other thread's instruction runs between two of
// the first: both orders of the whole threads are right.
#include "suite.h"

static long number = 7;
static long *volatile pointer = &number;
static long seen;

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

static void *test_and_use(void *unused)
{
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
	if (pointer) { // race: pointer
		DELAY(20);
		seen = *pointer; // race: pointer
	}
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
	return unused;
}

// take_away sets the pointer to NULL while the other thread may use it, and back
// when that is done.
static void take_away(void)
{
	pthread_t other;
	start_thread(&other, test_and_use, NULL);
	DELAY(10);
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
	pointer = NULL; // race: pointer
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
	pthread_join(other, NULL);
	pointer = &number;
}

int main(int argc, char **argv)
{
	long rounds = 1;
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 1000000),
		{0},
	});
	for (long i = 0; i < rounds; i++)
		take_away();
	if (seen != 0 && seen != 7)
		wrong("%ld was seen", seen);
	printf("frost-figure-1b: correct\n");
	return 0;
}
