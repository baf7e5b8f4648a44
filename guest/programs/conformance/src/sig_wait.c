// sigwait, sigwaitinfo, sigtimedwait: pending and coming signals, lowest first, time-outs, other signals interrupt.
#include "conformance.h"

static volatile sig_atomic_t hits;

static void handler(int sig)
{
	(void)sig;
	hits++;
}

static sigset_t set;

static void *waiter(void *arg)
{
	(void)arg;
	int sum = 0;
	for (int i = 0; i < 20; i++) {
		siginfo_t si;
		CHECK(sigwaitinfo(&set, &si) == SIGRTMIN);
		CHECK(si.si_code == SI_QUEUE && si.si_value.sival_int == i);
		sum += si.si_value.sival_int;
	}
	return (void *)(intptr_t)sum;
}

static atomic_int returned;

static void *interrupted(void *arg)
{
	(void)arg;
	siginfo_t si;
	int r = sigtimedwait(&set, &si, &(struct timespec){100, 0});
	int e = r == -1 ? errno : 0;
	returned = 1;
	return (void *)(intptr_t)e;
}

int main(void)
{
	int sig;
	siginfo_t si;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1});
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGUSR1);
	SHOWE(sigwait(&set, &sig));
	printf("SIG%s\n", sigabbrev_np(sig));
	CHECK(sigwaitinfo(&set, &si) == SIGUSR2);
	printf("SIG%s from me %d\n", sigabbrev_np(si.si_signo), si.si_pid == getpid());
	CHECK(sigtimedwait(&set, &si, &(struct timespec){10, 0}) == SIGRTMIN);
	printf("real-time, value %d\n", si.si_value.sival_int);

	SHOW(sigtimedwait(&set, &si, &(struct timespec){0, 0}));
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(sigtimedwait(&set, NULL, &(struct timespec){0, 2 * MSEC}));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 2 * MSEC);
	SHOW(sigtimedwait(&set, NULL, &(struct timespec){0, SEC}));
	SHOW(sigtimedwait(&set, NULL, &(struct timespec){-1, 0}));
	raise(SIGUSR2);
	SHOW(sigtimedwait(&set, NULL, &(struct timespec){0, 0}) == SIGUSR2);

	pthread_t t = start(waiter, NULL);
	for (int i = 0; i < 20; i++)
		CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) == 0);
	printf("sum %ld\n", (long)finish(t));

	// A handled signal outside the set interrupts, SA_RESTART or not.
	on_signal(SIGALRM, handler, SA_RESTART);
	t = start(interrupted, NULL);
	while (!returned) {
		pthread_kill(t, SIGALRM);
		nap();
	}
	printf("interrupted: %s\n", errname((intptr_t)finish(t)));

	// An ignored one does not.
	on_signal(SIGALRM, SIG_IGN, 0);
	returned = 0;
	t = start(interrupted, NULL);
	for (int i = 0; i < 5; i++) {
		pthread_kill(t, SIGALRM);
		nap();
	}
	CHECK(!returned);
	CHECK(pthread_kill(t, SIGUSR1) == 0);
	printf("ignored, then awaited: %s\n", errname((intptr_t)finish(t)));
	return 0;
}
