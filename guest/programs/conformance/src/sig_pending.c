// Blocked signals: pending sets of process and thread, standard ones once, delivery order when unblocked.
#include "conformance.h"

static char order[200];
static int n;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	(void)si;
	if (sig >= SIGRTMIN)
		n += snprintf(order + n, sizeof order - n, " RT%d:%d", sig - SIGRTMIN, si->si_value.sival_int);
	else
		n += snprintf(order + n, sizeof order - n, " %s", sigabbrev_np(sig));
}

static void list(const char *what, const sigset_t *s)
{
	printf("%s:", what);
	for (int i = 1; i < 32; i++)
		if (sigismember(s, i) == 1)
			printf(" %s", sigabbrev_np(i));
	for (int i = 0; i < 5; i++)
		if (sigismember(s, SIGRTMIN + i) == 1)
			printf(" RT%d", i);
	printf("\n");
}

static void *thread(void *arg)
{
	sigset_t p;
	raise(SIGHUP);
	CHECK(sigpending(&p) == 0);
	list("thread's own and the process's", &p);
	return arg;
}

static void queue_all(void)
{
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGINT);
	for (int i = 0; i < 3; i++) {
		sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = i});
		sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i});
	}
}

int main(void)
{
	sigset_t all, p;
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	sigfillset(&all);
	// Every handler blocks the other signals: they run one after the other.
	sa.sa_mask = all;
	static const int sigs[] = {SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGTERM};
	for (int i = 0; i < LEN(sigs); i++)
		CHECK(sigaction(sigs[i], &sa, NULL) == 0);
	for (int i = 0; i < 5; i++)
		CHECK(sigaction(SIGRTMIN + i, &sa, NULL) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	queue_all();
	CHECK(sigpending(&p) == 0);
	list("pending", &p);
	finish(start(thread, NULL));
	CHECK(sigpending(&p) == 0);
	list("the thread's died with it", &p);
	CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
	printf("order:%s\n", order);
	CHECK(sigpending(&p) == 0);
	list("pending", &p);

	// Without these masks each later handler interrupts the one before it.
	n = 0;
	sigemptyset(&sa.sa_mask);
	for (int i = 0; i < LEN(sigs); i++)
		CHECK(sigaction(sigs[i], &sa, NULL) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGINT);
	CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
	printf("nested order:%s\n", order);

	// The thread's own signals come before the process's.
	n = 0;
	for (int i = 0; i < LEN(sigs); i++) {
		sa.sa_mask = all;
		CHECK(sigaction(sigs[i], &sa, NULL) == 0);
	}
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	kill(getpid(), SIGINT);
	raise(SIGTERM);
	CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
	printf("own first:%s\n", order);

	// Ignoring a signal discards its pending instances.
	n = 0;
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	queue_all();
	on_signal(SIGUSR1, SIG_IGN, 0);
	on_signal(SIGRTMIN + 3, SIG_IGN, 0);
	on_signal(SIGUSR2, SIG_DFL, 0);
	CHECK(sigpending(&p) == 0);
	list("after SIG_IGN", &p);
	sigdelset(&all, SIGUSR2);
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
	printf("order:%s\n", order);
	on_signal(SIGUSR2, SIG_IGN, 0);
	return 0;
}
