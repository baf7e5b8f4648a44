// Four threads and two processes send each other real-time signals all the time: every one arrives, and the work is done.
#include "conformance.h"

enum { THREADS = 4, EACH = 60 };

static atomic_int received;
static pthread_t thread[THREADS];
static pthread_barrier_t bar;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	received += si->si_value.sival_int;
}

static void *worker(void *arg)
{
	int me = (intptr_t)arg;
	unsigned long sum = 0;
	pthread_barrier_wait(&bar);
	for (int i = 0; i < EACH; i++) {
		int r;
		while ((r = pthread_sigqueue(thread[(me + 1 + i % (THREADS - 1)) % THREADS], SIGRTMIN, (union sigval){.sival_int = 1})) == EAGAIN)
			sched_yield();
		OK(r);
		for (int k = 0; k < 200; k++)
			sum += k * i;
	}
	pthread_barrier_wait(&bar);
	return (void *)sum;
}

int main(void)
{
	on_siginfo(SIGRTMIN, handler, SA_RESTART);
	OK(pthread_barrier_init(&bar, NULL, THREADS));
	int up[2];
	CHECK(pipe(up) == 0);
	pid_t parent = getpid(), pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 100; i++)
			while (sigqueue(parent, SIGRTMIN, (union sigval){.sival_int = 1000}) != 0) {
				CHECK(errno == EAGAIN);
				sched_yield();
			}
		_exit(0);
	}
	pthread_attr_t a;
	sigset_t all;
	sigfillset(&all);
	OK(pthread_attr_init(&a));
	// All of thread[] must be set before any thread uses it.
	sigset_t old;
	OK(pthread_sigmask(SIG_BLOCK, &all, &old));
	OK(pthread_attr_setsigmask_np(&a, &old));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_create(&thread[i], &a, worker, (void *)(intptr_t)i));
	OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	unsigned long sum = 0;
	for (int i = 0; i < THREADS; i++)
		sum += (unsigned long)finish(thread[i]);
	CHECK(wait_for(pid) == 0);
	while (received < THREADS * EACH + 100 * 1000)
		nap();
	printf("received %d, sum %lu\n", received, sum);
	return 0;
}
