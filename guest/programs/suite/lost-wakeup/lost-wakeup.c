// lost-wakeup: two threads that take turns, each waiting for the other's signal.
//
// In the buggy form a thread checks whose turn it is before it takes the lock,
// and the other changes the turn and signals without it. A signal between the
// check and the wait is lost, and both wait for ever.
#include "suite.h"

static long rounds = 10;
static volatile long turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long sum;

#ifdef BUGGY
static void await_turn(long id)
{
	if (turn != id) { // race: turn
		DELAY(5);
		pthread_mutex_lock(&mutex);
		pthread_cond_wait(&changed, &mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void give_turn(long id)
{
	turn = id; // race: turn
	pthread_cond_signal(&changed); // race: changed
}
#else
static void await_turn(long id)
{
	pthread_mutex_lock(&mutex);
	while (turn != id)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void give_turn(long id)
{
	pthread_mutex_lock(&mutex);
	turn = id;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
}
#endif

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		await_turn(id);
		sum += id + 1; // race: sum
		give_turn(1 - id);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		{0},
	});

	run_threads(2, body);

	if (sum != 3 * rounds)
		wrong("the sum is %ld", sum);
	printf("lost-wakeup: %ld rounds, correct\n", rounds);
	return 0;
}
