// Real-time signals: queued without loss, by number and then in the order sent; the queue's limit is EAGAIN.
#include "conformance.h"

static int got[64], n;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	got[n++] = (sig - SIGRTMIN) * 100 + si->si_value.sival_int;
}

int main(void)
{
	sigset_t all;
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	sigfillset(&all);
	sa.sa_mask = all;
	for (int i = 0; i < 4; i++)
		CHECK(sigaction(SIGRTMIN + i, &sa, NULL) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	for (int i = 0; i < 10; i++)
		for (int s = 3; s >= 0; s--)
			CHECK(sigqueue(getpid(), SIGRTMIN + s, (union sigval){.sival_int = i}) == 0);
	// kill queues them, too.
	CHECK(kill(getpid(), SIGRTMIN) == 0 && kill(getpid(), SIGRTMIN) == 0);
	CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
	for (int i = 0; i < n; i++)
		printf("%d%c", got[i], i % 10 == 9 || i == n - 1 ? '\n' : ' ');
	printf("range %d\n", SIGRTMAX - SIGRTMIN);

	struct rlimit r;
	CHECK(getrlimit(RLIMIT_SIGPENDING, &r) == 0);
	r.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_SIGPENDING, &r) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	n = 0;
	SHOW(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1}));
	// When the queue is full, kill still leaves the signal pending.
	SHOW(kill(getpid(), SIGUSR1));
	sigset_t p;
	CHECK(sigpending(&p) == 0);
	printf("USR1 pending %d\n", sigismember(&p, SIGUSR1));
	return 0;
}
