// Process-shared condition variable and mutex: parent and child hand a counter to and fro.
#include "conformance.h"

struct shared {
	pthread_mutex_t mu;
	pthread_cond_t cond;
	int turn;
	int sum;
};

static struct shared *s;

static void play(int me, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		OK(pthread_mutex_lock(&s->mu));
		while (s->turn != me)
			OK(pthread_cond_wait(&s->cond, &s->mu));
		s->sum = s->sum * 3 + me;
		s->sum %= 1000003;
		s->turn = !me;
		OK(pthread_cond_broadcast(&s->cond));
		OK(pthread_mutex_unlock(&s->mu));
	}
}

int main(void)
{
	s = shared_memory(sizeof *s);
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	OK(pthread_mutexattr_init(&ma));
	OK(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED));
	OK(pthread_condattr_init(&ca));
	OK(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED));
	OK(pthread_mutex_init(&s->mu, &ma));
	OK(pthread_cond_init(&s->cond, &ca));
	pid_t pid = fork();
	CHECK(pid >= 0);
	play(pid == 0, 100);
	if (pid == 0)
		_exit(7);
	printf("child: %s\n", status_text(wait_for(pid)));
	printf("sum %d turn %d\n", s->sum, s->turn);
	return 0;
}
