// Older signal calls that programs still use: sigset, sighold, sigrelse, sigignore, sigpause, BSD masks, sets combined.
#include "conformance.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define BIT(sig) (1 << ((sig) - 1))

static volatile sig_atomic_t hits;

static void handler(int sig)
{
	(void)sig;
	hits++;
}

int main(void)
{
	CHECK(sigset(SIGUSR1, handler) == SIG_DFL);
	SHOW(sighold(SIGUSR1));
	raise(SIGUSR1);
	printf("held: %d\n", (int)hits);
	SHOW(sigrelse(SIGUSR1));
	printf("released: %d\n", (int)hits);
	CHECK(sigset(SIGUSR1, SIG_HOLD) == handler);
	CHECK(sigset(SIGUSR1, handler) == SIG_HOLD);
	SHOW(sigignore(SIGUSR2));
	raise(SIGUSR2);
	int old = sigblock(BIT(SIGUSR1) | BIT(SIGTERM));
	printf("old mask %x\n", old);
	raise(SIGUSR1);
	printf("blocked: %d, mask has both %d\n", (int)hits, siggetmask() == (BIT(SIGUSR1) | BIT(SIGTERM)));
	// Only the named signal is unblocked, and it is blocked again afterwards.
	SHOW(sigpause(SIGUSR1));
	printf("paused: %d\n", (int)hits);
	sigset_t s;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
	printf("USR1 let in only meanwhile: %d\n", sigismember(&s, SIGUSR1));
	printf("set mask %d\n", sigsetmask(0) == (BIT(SIGUSR1) | BIT(SIGTERM)));
	SHOW(siginterrupt(SIGUSR1, 0));
	struct sigaction sa;
	CHECK(sigaction(SIGUSR1, NULL, &sa) == 0);
	printf("restarts %d\n", (sa.sa_flags & SA_RESTART) != 0);

	sigset_t a, b, c;
	sigemptyset(&a);
	sigemptyset(&b);
	printf("empty %d\n", sigisemptyset(&a));
	sigaddset(&a, SIGINT);
	sigaddset(&a, SIGHUP);
	sigaddset(&b, SIGINT);
	sigaddset(&b, SIGQUIT);
	sigandset(&c, &a, &b);
	printf("and %d %d %d\n", sigismember(&c, SIGINT), sigismember(&c, SIGHUP), sigismember(&c, SIGQUIT));
	sigorset(&c, &a, &b);
	printf("or %d %d %d\n", sigismember(&c, SIGINT), sigismember(&c, SIGHUP), sigismember(&c, SIGQUIT));
	SHOW(sigaddset(&a, 0));
	SHOW(sigaddset(&a, 65));
	SHOW(sigismember(&a, 100));
	return 0;
}
