// Five dining philosophers who lock with trylock and back off; all of them eat.
#include "conformance.h"

enum { N = 5, MEALS = 30 };

static pthread_mutex_t fork_[N];
static int meals[N];
static atomic_int eating[N];

static void *philosopher(void *arg)
{
	int me = (intptr_t)arg, left = me, right = (me + 1) % N;
	while (meals[me] < MEALS) {
		OK(pthread_mutex_lock(&fork_[left]));
		if (pthread_mutex_trylock(&fork_[right]) == 0) {
			eating[me] = 1;
			CHECK(!eating[(me + 1) % N] && !eating[(me + N - 1) % N]);
			meals[me]++;
			eating[me] = 0;
			OK(pthread_mutex_unlock(&fork_[right]));
		}
		OK(pthread_mutex_unlock(&fork_[left]));
		sched_yield();
	}
	return NULL;
}

int main(void)
{
	pthread_t t[N];
	for (int i = 0; i < N; i++)
		OK(pthread_mutex_init(&fork_[i], NULL));
	for (int i = 0; i < N; i++)
		t[i] = start(philosopher, (void *)(intptr_t)i);
	for (int i = 0; i < N; i++)
		finish(t[i]);
	for (int i = 0; i < N; i++)
		printf("philosopher %d ate %d times\n", i, meals[i]);
	return 0;
}
