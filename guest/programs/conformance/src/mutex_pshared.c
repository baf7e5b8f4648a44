// Process-shared mutex in shared anonymous memory: four processes of two threads each count together.
#include "conformance.h"

struct shared {
	pthread_mutex_t mu;
	int counter;
};

static struct shared *s;

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		OK(pthread_mutex_lock(&s->mu));
		int c = s->counter;
		if (i % 25 == 0)
			sched_yield();
		s->counter = c + 1;
		OK(pthread_mutex_unlock(&s->mu));
	}
	return NULL;
}

int main(void)
{
	s = shared_memory(sizeof *s);
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	OK(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	OK(pthread_mutex_init(&s->mu, &a));

	pid_t pid[4];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0) {
			pthread_t t[2] = {start(work, NULL), start(work, NULL)};
			finish(t[0]);
			finish(t[1]);
			_exit(0);
		}
	}
	for (int i = 0; i < LEN(pid); i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("counter %d\n", s->counter);
	return 0;
}
