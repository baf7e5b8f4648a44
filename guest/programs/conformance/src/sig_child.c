// SIGCHLD: codes and status of exit, kill, stop and continue; SA_NOCLDSTOP, SA_NOCLDWAIT and SIG_IGN.
#include "conformance.h"

static volatile sig_atomic_t count;
static siginfo_t info;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	info = *si;
	count++;
}

static const char *code(int c)
{
	return c == CLD_EXITED ? "exited" : c == CLD_KILLED ? "killed" : c == CLD_DUMPED ? "dumped" : c == CLD_STOPPED ? "stopped" : c == CLD_CONTINUED ? "continued" : "other";
}

static void await(const char *what, pid_t pid)
{
	sigset_t none;
	sigemptyset(&none);
	while (count == 0)
		sigsuspend(&none);
	printf("%s: %s, status %d, right child %d, right user %d\n", what, code(info.si_code), info.si_status,
	       info.si_pid == pid, info.si_uid == getuid());
	count = 0;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	while (pid == 0)
		pause();
	return pid;
}

static pid_t leaver(int status)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(status);
	return pid;
}

int main(void)
{
	no_core();
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	CHECK(sigprocmask(SIG_BLOCK, &chld, NULL) == 0);
	on_siginfo(SIGCHLD, handler, SA_RESTART);
	pid_t pid = leaver(5);
	await("exit", pid);
	printf("%s\n", status_text(wait_for(pid)));
	pid = sleeper();
	CHECK(kill(pid, SIGSTOP) == 0);
	await("stop", pid);
	CHECK(kill(pid, SIGCONT) == 0);
	await("continue", pid);
	CHECK(kill(pid, SIGTERM) == 0);
	await("kill", pid);
	printf("%s\n", status_text(wait_for(pid)));

	on_siginfo(SIGCHLD, handler, SA_NOCLDSTOP);
	pid = sleeper();
	int status;
	CHECK(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
	printf("%s, signals %d\n", status_text(status), count);
	CHECK(kill(pid, SIGCONT) == 0 && waitpid(pid, &status, WCONTINUED) == pid);
	printf("%s, signals %d\n", status_text(status), count);
	CHECK(kill(pid, SIGKILL) == 0);
	await("NOCLDSTOP, kill", pid);
	CHECK(wait_for(pid) == SIGKILL);

	// No zombies: the child is reaped at once, and wait waits for all and fails.
	on_siginfo(SIGCHLD, handler, SA_NOCLDWAIT);
	pid = leaver(3);
	SHOW(waitpid(pid, &status, 0));
	SHOW(waitpid(-1, &status, 0));
	SHOW(kill(pid, 0));
	await("NOCLDWAIT, exit", pid);
	on_signal(SIGCHLD, SIG_IGN, 0);
	pid = leaver(3);
	SHOW(waitpid(pid, &status, 0));
	SHOW(kill(pid, 0));
	on_signal(SIGCHLD, SIG_DFL, 0);
	pid = leaver(4);
	printf("default: %s\n", status_text(wait_for(pid)));
	return 0;
}
