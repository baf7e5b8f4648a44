// Sixty processes at once, zombies first and then reaped, ids distinct; eight processes of four threads each.
#include "conformance.h"

enum { N = 60 };

struct shared {
	pthread_barrier_t bar;
	atomic_int total;
	pid_t tid[8 * 4];
	atomic_int n;
};

static struct shared *s;

static void *thread(void *arg)
{
	s->tid[s->n++] = gettid();
	pthread_barrier_wait(&s->bar);
	s->total += (intptr_t)arg;
	return NULL;
}

int main(void)
{
	pid_t pid[N];
	for (int i = 0; i < N; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0)
			_exit(i);
		for (int j = 0; j < i; j++)
			CHECK(pid[j] != pid[i]);
	}
	siginfo_t si;
	for (int i = 0; i < N; i++)
		CHECK(waitid(P_PID, pid[i], &si, WEXITED | WNOWAIT) == 0);
	// Zombies still have their ids.
	int sum = 0;
	for (int i = N - 1; i >= 0; i--) {
		CHECK(kill(pid[i], 0) == 0);
		CHECK(wait_for(pid[i]) == i << 8);
		CHECK(kill(pid[i], 0) == -1 && errno == ESRCH);
		sum += i;
	}
	printf("sum %d\n", sum);

	s = shared_memory(sizeof *s);
	pthread_barrierattr_t a;
	OK(pthread_barrierattr_init(&a));
	OK(pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	OK(pthread_barrier_init(&s->bar, &a, 8 * 4));
	for (int i = 0; i < 8; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0) {
			pthread_t t[4];
			for (int k = 0; k < LEN(t); k++)
				t[k] = start(thread, (void *)(intptr_t)(i * 4 + k));
			for (int k = 0; k < LEN(t); k++)
				finish(t[k]);
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++)
		CHECK(wait_for(pid[i]) == 0);
	for (int i = 0; i < s->n; i++)
		for (int j = 0; j < i; j++)
			CHECK(s->tid[i] != s->tid[j]);
	printf("total %d\n", s->total);
	return 0;
}
