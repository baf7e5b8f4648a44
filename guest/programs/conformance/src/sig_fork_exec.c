// Signals over fork and exec: handlers and masks inherited, pending ones not; exec resets handlers, keeps the rest.
#include "conformance.h"

static volatile sig_atomic_t hits;

static void handler(int sig)
{
	(void)sig;
	hits++;
}

static const char *disposition(int sig)
{
	struct sigaction sa;
	CHECK(sigaction(sig, NULL, &sa) == 0);
	return sa.sa_handler == SIG_DFL ? "default" : sa.sa_handler == SIG_IGN ? "ignored" : "handled";
}

static void state(const char *who)
{
	sigset_t mask, pending;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigpending(&pending) == 0);
	printf("%s: USR1 %s, USR2 %s, TERM %s; blocked %d %d; pending %d %d\n", who, disposition(SIGUSR1), disposition(SIGUSR2),
	       disposition(SIGTERM), sigismember(&mask, SIGUSR1), sigismember(&mask, SIGTERM),
	       sigismember(&pending, SIGUSR1), sigismember(&pending, SIGTERM));
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		state("after exec");
		stack_t ss;
		CHECK(sigaltstack(NULL, &ss) == 0);
		printf("alternate stack gone: %d\n", ss.ss_flags == SS_DISABLE);
		return 0;
	}
	sigset_t block;
	on_signal(SIGUSR1, handler, SA_RESTART);
	on_signal(SIGUSR2, SIG_IGN, 0);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigaddset(&block, SIGTERM);
	CHECK(sigprocmask(SIG_BLOCK, &block, NULL) == 0);
	CHECK(kill(getpid(), SIGUSR1) == 0 && kill(getpid(), SIGTERM) == 0);
	stack_t ss = {.ss_sp = malloc(65536), .ss_size = 65536};
	CHECK(sigaltstack(&ss, NULL) == 0);
	state("parent");
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		state("child");
		CHECK(kill(getpid(), SIGTERM) == 0);
		state("child with its own");
		execl("/proc/self/exe", "again", "exec", NULL);
		_exit(1);
	}
	printf("%s\n", status_text(wait_for(pid)));
	state("parent");
	CHECK(sigprocmask(SIG_UNBLOCK, &(sigset_t){{1ul << (SIGUSR1 - 1)}}, NULL) == 0);
	printf("hits %d\n", hits);
	execl("/proc/self/exe", "again", "exec", NULL);
	return 1;
}
