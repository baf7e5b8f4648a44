// Handlers inside handlers: chains of different signals, masks restored level by level, signals to oneself and others.
#include "conformance.h"

static char trail[400];
static int n;

static void note(const char *what, int sig)
{
	sigset_t s;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
	int blocked = 0;
	for (int i = 0; i < 6; i++)
		blocked += sigismember(&s, SIGRTMIN + i) << i;
	n += snprintf(trail + n, sizeof trail - n, "%s%d[%d] ", what, sig - SIGRTMIN, blocked);
}

static void handler(int sig)
{
	note("+", sig);
	if (sig < SIGRTMIN + 5)
		raise(sig + 1);
	raise(sig); // pending until this handler returns
	static int again[8];
	if (again[sig - SIGRTMIN]++ == 1)
		signal(sig, SIG_IGN);
	note("-", sig);
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

int main(void)
{
	for (int i = 0; i < 6; i++)
		on_signal(SIGRTMIN + i, handler, 0);
	// Each level's second round finds the next level ignored.
	raise(SIGRTMIN + 4);
	note("=", SIGRTMIN);
	printf("%s\n", trail);

	// A handler that is interrupted a hundred times by another signal.
	on_signal(SIGUSR1, tick, 0);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	printf("ticks %d\n", (int)ticks);
	return 0;
}
