// SA_NODEFER, SA_RESETHAND, sa_mask, and the old action from sigaction; signal, sysv_signal; refusals.
#include "conformance.h"

static volatile sig_atomic_t depth, deepest, hits, blocked_inside;

static void nesting(int sig)
{
	if (++depth > deepest)
		deepest = depth;
	if (++hits < 3)
		raise(sig);
	depth--;
}

static void masked(int sig)
{
	sigset_t s;
	(void)sig;
	sigprocmask(SIG_BLOCK, NULL, &s);
	blocked_inside = sigismember(&s, SIGUSR1) + 2 * sigismember(&s, SIGUSR2) + 4 * sigismember(&s, SIGTERM) +
			 8 * sigismember(&s, SIGKILL);
	hits++;
}

static void try(const char *name, int flags)
{
	on_signal(SIGUSR1, nesting, flags);
	depth = deepest = hits = 0;
	raise(SIGUSR1);
	printf("%s: hits %d, deepest %d\n", name, hits, deepest);
}

int main(void)
{
	try("plain", 0);
	try("nodefer", SA_NODEFER);

	struct sigaction sa = {.sa_handler = masked, .sa_flags = SA_RESTART}, old;
	sigaddset(&sa.sa_mask, SIGUSR2);
	sigaddset(&sa.sa_mask, SIGKILL);
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	raise(SIGUSR1);
	printf("blocked in the handler: %d\n", blocked_inside);
	sa.sa_flags = SA_NODEFER;
	CHECK(sigaction(SIGUSR1, &sa, &old) == 0);
	printf("old: same handler %d, restart %d, usr2 %d, usr1 %d\n", old.sa_handler == masked,
	       (old.sa_flags & SA_RESTART) != 0, sigismember(&old.sa_mask, SIGUSR2), sigismember(&old.sa_mask, SIGUSR1));
	raise(SIGUSR1);
	printf("blocked in the handler, nodefer: %d\n", blocked_inside);
	sigset_t now;
	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("afterwards: %d %d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));

	on_signal(SIGUSR1, masked, SA_RESETHAND);
	raise(SIGUSR1);
	CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
	printf("reset to default %d\n", old.sa_handler == SIG_DFL);
	// SA_RESETHAND alone still blocks the signal in its handler.
	printf("blocked in the handler, resethand: %d\n", blocked_inside);

	CHECK(signal(SIGUSR2, masked) == SIG_DFL);
	CHECK(sigaction(SIGUSR2, NULL, &old) == 0);
	printf("signal: restart %d, resethand %d\n", (old.sa_flags & SA_RESTART) != 0, (old.sa_flags & SA_RESETHAND) != 0);
	CHECK(sysv_signal(SIGUSR2, masked) == masked);
	CHECK(sigaction(SIGUSR2, NULL, &old) == 0);
	printf("sysv_signal: restart %d, resethand %d, nodefer %d\n", (old.sa_flags & SA_RESTART) != 0,
	       (old.sa_flags & SA_RESETHAND) != 0, (old.sa_flags & SA_NODEFER) != 0);
	CHECK(signal(SIGUSR2, masked) == masked);
	CHECK(sigaction(SIGUSR2, NULL, &old) == 0);
	printf("signal again: restart %d\n", (old.sa_flags & SA_RESTART) != 0);

	SHOW(sigaction(SIGKILL, &sa, NULL));
	SHOW(sigaction(SIGSTOP, &sa, NULL));
	SHOW(sigaction(SIGKILL, NULL, &old));
	SHOW(sigaction(0, &sa, NULL));
	SHOW(sigaction(65, &sa, NULL));
	SHOW(sigaction(32, &sa, NULL)); // used by glibc itself
	SHOW(signal(SIGKILL, SIG_IGN) == SIG_ERR ? -1 : 0);
	SHOW(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4));
	return 0;
}
