// Signals for the process go to a thread that does not block them, those for a thread to that thread only; a signal thread.
#include "conformance.h"

#include <semaphore.h>

static _Thread_local int mine;
static atomic_int by[3], total;
static pthread_barrier_t bar;
static sem_t sem;

static void handler(int sig)
{
	(void)sig;
	by[mine]++;
	total++;
	sem_post(&sem);
}

static void wait_sem(void)
{
	while (sem_wait(&sem) != 0)
		CHECK(errno == EINTR);
}

static void *worker(void *arg)
{
	mine = (intptr_t)arg;
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	OK(pthread_sigmask(mine == 2 ? SIG_UNBLOCK : SIG_BLOCK, &s, NULL));
	pthread_barrier_wait(&bar);
	pthread_barrier_wait(&bar);
	return NULL;
}

static void *signal_thread(void *arg)
{
	sigset_t *set = arg;
	int sum = 0;
	for (;;) {
		siginfo_t si;
		int sig = sigwaitinfo(set, &si);
		CHECK(sig > 0);
		if (sig == SIGTERM)
			return (void *)(intptr_t)sum;
		sum += si.si_value.sival_int;
	}
}

int main(void)
{
	sigset_t s;
	OK(pthread_barrier_init(&bar, NULL, 3));
	CHECK(sem_init(&sem, 0, 0) == 0);
	on_signal(SIGUSR1, handler, SA_RESTART);
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigaddset(&s, SIGRTMIN);
	sigaddset(&s, SIGTERM);
	OK(pthread_sigmask(SIG_BLOCK, &s, NULL));
	pthread_t a = start(worker, (void *)1), b = start(worker, (void *)2);
	pthread_barrier_wait(&bar);
	for (int i = 0; i < 20; i++) {
		CHECK(kill(getpid(), SIGUSR1) == 0);
		wait_sem();
	}
	printf("main %d, blocking %d, open %d\n", by[0], by[1], by[2]);
	// A signal for a thread that blocks it stays pending, although others could take it.
	OK(pthread_kill(a, SIGUSR1));
	OK(pthread_kill(b, SIGUSR1));
	wait_sem();
	printf("main %d, blocking %d, open %d\n", by[0], by[1], by[2]);
	pthread_barrier_wait(&bar);
	finish(a);
	finish(b);
	printf("main %d, blocking %d, open %d\n", by[0], by[1], by[2]);

	// No thread can take it: it stays pending for the process, and a later thread takes it.
	CHECK(kill(getpid(), SIGUSR1) == 0);
	OK(pthread_barrier_destroy(&bar));
	OK(pthread_barrier_init(&bar, NULL, 2));
	b = start(worker, (void *)2);
	pthread_barrier_wait(&bar);
	wait_sem();
	printf("main %d, blocking %d, open %d\n", by[0], by[1], by[2]);
	pthread_barrier_wait(&bar);
	finish(b);

	pthread_t t = start(signal_thread, &s);
	for (int i = 1; i <= 30; i++)
		CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) == 0);
	sigset_t p;
	do {
		sched_yield();
		CHECK(sigpending(&p) == 0);
	} while (sigismember(&p, SIGRTMIN));
	CHECK(kill(getpid(), SIGTERM) == 0);
	printf("signal thread summed %ld\n", (long)finish(t));
	return 0;
}
