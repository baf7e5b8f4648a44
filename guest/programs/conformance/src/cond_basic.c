// Condition variable: signal without a waiter, ping-pong of two threads, broadcast to many.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER, gate = PTHREAD_COND_INITIALIZER;
static int turn, waiting, passed;
static bool open_gate;

static void *player(void *arg)
{
	int me = (intptr_t)arg;
	for (int i = 0; i < 100; i++) {
		OK(pthread_mutex_lock(&mu));
		while (turn % 2 != me)
			OK(pthread_cond_wait(&turn_changed, &mu));
		CHECK(turn == 2 * i + me);
		turn++;
		OK(pthread_cond_signal(&turn_changed));
		OK(pthread_mutex_unlock(&mu));
	}
	return NULL;
}

static void *visitor(void *arg)
{
	(void)arg;
	OK(pthread_mutex_lock(&mu));
	waiting++;
	while (!open_gate)
		OK(pthread_cond_wait(&gate, &mu));
	passed++;
	OK(pthread_mutex_unlock(&mu));
	return NULL;
}

int main(void)
{
	SHOWE(pthread_cond_signal(&gate));
	SHOWE(pthread_cond_broadcast(&gate));
	pthread_t a = start(player, (void *)0), b = start(player, (void *)1);
	finish(a);
	finish(b);
	printf("turns %d\n", turn);

	pthread_t t[10];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(visitor, NULL);
	OK(pthread_mutex_lock(&mu));
	while (waiting < LEN(t)) {
		OK(pthread_mutex_unlock(&mu));
		nap();
		OK(pthread_mutex_lock(&mu));
	}
	printf("passed before: %d\n", passed);
	open_gate = true;
	OK(pthread_cond_broadcast(&gate));
	OK(pthread_mutex_unlock(&mu));
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("passed after: %d\n", passed);
	SHOWE(pthread_cond_destroy(&gate));
	SHOWE(pthread_cond_destroy(&turn_changed));
	return 0;
}
