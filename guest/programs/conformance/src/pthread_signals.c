// pthread_kill, pthread_sigqueue and pthread_sigmask: signals reach the thread they name and obey its mask.
#include "conformance.h"

static _Thread_local volatile int hits, value;
static pthread_barrier_t bar;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	hits++;
	if (si->si_code == SI_QUEUE)
		value = si->si_value.sival_int;
}

static void *worker(void *arg)
{
	int me = (intptr_t)arg;
	sigset_t set, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	pthread_barrier_wait(&bar);
	// The main thread signals every other worker.
	pthread_barrier_wait(&bar);
	CHECK(hits == 0);
	CHECK(sigpending(&pending) == 0);
	CHECK(sigismember(&pending, SIGUSR1) == (me % 2 == 0));
	OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	CHECK(hits == (me % 2 == 0));
	return (void *)(intptr_t)value;
}

static void *done(void *arg)
{
	return arg;
}

int main(void)
{
	enum { N = 4 };
	on_siginfo(SIGUSR1, handler, 0);
	OK(pthread_barrier_init(&bar, NULL, N + 1));
	pthread_t t[N];
	for (int i = 0; i < N; i++)
		t[i] = start(worker, (void *)(intptr_t)i);
	pthread_barrier_wait(&bar);
	for (int i = 0; i < N; i += 2)
		OK(pthread_sigqueue(t[i], SIGUSR1, (union sigval){.sival_int = 100 + i}));
	SHOWE(pthread_kill(t[0], 0));
	SHOWE(pthread_kill(t[0], 65));
	SHOWE(pthread_kill(t[0], -1));
	SHOWE(pthread_sigqueue(t[0], 65, (union sigval){0}));
	pthread_barrier_wait(&bar);
	for (int i = 0; i < N; i++)
		printf("worker %d got %ld\n", i, (long)finish(t[i]));
	printf("main hits %d\n", hits);
	SHOWE(pthread_kill(pthread_self(), SIGUSR1));
	printf("main hits %d\n", hits);

	sigset_t old, all;
	sigfillset(&all);
	SHOWE(pthread_sigmask(77, &all, NULL));
	SHOWE(pthread_sigmask(SIG_SETMASK, &all, &old));
	SHOWE(pthread_sigmask(SIG_SETMASK, NULL, &all));
	printf("KILL %d STOP %d USR1 %d\n", sigismember(&all, SIGKILL), sigismember(&all, SIGSTOP),
	       sigismember(&all, SIGUSR1));
	// A new thread inherits the mask unless its attributes say otherwise.
	pthread_attr_t a;
	sigset_t got;
	OK(pthread_attr_init(&a));
	SHOWE(pthread_attr_getsigmask_np(&a, &got));
	printf("no mask set: %d\n", pthread_attr_getsigmask_np(&a, &got) == PTHREAD_ATTR_NO_SIGMASK_NP);
	SHOWE(pthread_attr_setsigmask_np(&a, &old));
	SHOWE(pthread_attr_getsigmask_np(&a, &got));
	OK(pthread_create(&t[0], &a, done, NULL));
	finish(t[0]);
	OK(pthread_attr_destroy(&a));
	return 0;
}
