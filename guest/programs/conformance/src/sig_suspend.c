// sigsuspend and pause: mask swapped in one step, restored afterwards, pending signals taken at once; hand-over of turns.
#include "conformance.h"

static volatile sig_atomic_t hits, blocked_inside;

static void handler(int sig)
{
	sigset_t s;
	(void)sig;
	hits++;
	sigprocmask(SIG_BLOCK, NULL, &s);
	blocked_inside = sigismember(&s, SIGUSR2);
}

int main(void)
{
	sigset_t block, none, s;
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	on_signal(SIGUSR1, handler, SA_RESTART);
	CHECK(sigprocmask(SIG_BLOCK, &block, NULL) == 0);
	raise(SIGUSR1);
	SHOW(sigsuspend(&none));
	printf("hits %d\n", hits);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
	printf("blocked again %d\n", sigismember(&s, SIGUSR1));
	// The handler runs under the temporary mask.
	sigset_t usr2;
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	raise(SIGUSR1);
	SHOW(sigsuspend(&usr2));
	printf("hits %d, USR2 blocked in the handler %d\n", hits, blocked_inside);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
	printf("USR2 blocked now %d\n", sigismember(&s, SIGUSR2));

	// Parent and child take turns by signals alone, without losing one.
	hits = 0;
	pid_t parent = getpid(), pid = fork();
	CHECK(pid >= 0);
	pid_t other = pid == 0 ? parent : pid;
	for (int i = 1; i <= 50; i++) {
		if (pid == 0)
			CHECK(kill(other, SIGUSR1) == 0);
		while (hits < i)
			CHECK(sigsuspend(&none) == -1 && errno == EINTR);
		if (pid != 0)
			CHECK(kill(other, SIGUSR1) == 0);
	}
	if (pid == 0)
		_exit(hits);
	printf("hits %d, child %s\n", hits, status_text(wait_for(pid)));

	SHOW(syscall(SYS_rt_sigsuspend, &none, 4));
	on_signal(SIGALRM, handler, 0);
	ualarm(1000, 1000);
	SHOW(pause());
	ualarm(0, 0);
	return 0;
}
