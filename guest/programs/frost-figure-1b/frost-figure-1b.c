// frost-figure-1b: one thread tests a pointer and then follows it, another takes
// it away in between.
//
// The program fails only if the other thread's instruction comes between two of
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

int main(int argc, char **argv)
{
	pthread_t other;
	read_arguments(argc, argv, (struct argument[]){{0}});
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
	if (seen != 0 && seen != 7)
		wrong("%ld was seen", seen);
	printf("frost-figure-1b: correct\n");
	return 0;
}
