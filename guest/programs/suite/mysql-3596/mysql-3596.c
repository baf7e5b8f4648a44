// mysql-3596: a thread that lists the activities of the others, if they have any,
// while they finish and clear it.
//
// In the buggy form the listing thread reads the other's text without its
// lock: first whether it is set, then its characters.
#include "suite.h"

static long rounds = 100;
static const char *volatile activity;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long letters;

static void be_active(void)
{
	for (long i = 0; i < rounds; i++) {
		pthread_mutex_lock(&mutex);
		activity = "sorting"; // race: activity
		pthread_mutex_unlock(&mutex);
		DELAY(1);
		pthread_mutex_lock(&mutex);
		activity = NULL; // race: activity
		pthread_mutex_unlock(&mutex);
		DELAY(1);
	}
}

static void list_activity(void)
{
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
	if (activity) { // race: activity
		DELAY(2);
		for (const char *c = activity; *c; c++) // race: activity
			letters++;
	}
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
}

static void body(long id)
{
	if (id == 0) {
		be_active();
		return;
	}
	for (long i = 0; i < rounds; i++) {
		DELAY(1);
		list_activity();
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});

	run_threads(2, body);

	if (letters % 7 != 0)
		wrong("%ld letters were listed", letters);
	printf("mysql-3596: %ld rounds, correct\n", rounds);
	return 0;
}
