// wait, waitpid, wait4 and waitid in all forms: any child, groups, WNOHANG, WNOWAIT, rusage, refusals.
#include "conformance.h"

static pid_t leave(int code)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(code);
	return pid;
}

static pid_t stay(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	while (pid == 0)
		pause();
	return pid;
}

static void *waiter(void *arg)
{
	return (void *)(intptr_t)wait_for(*(pid_t *)arg);
}

int main(void)
{
	int status;
	siginfo_t si;
	struct rusage ru;
	SHOW(wait(&status));
	SHOW(waitpid(1, &status, 0));
	SHOW(waitpid(-1, &status, WNOHANG));
	SHOW(waitpid(999999999, &status, 0));
	SHOW(waitpid(-1, &status, 0x7777));
	SHOW(waitid(P_ALL, 0, &si, 0));
	SHOW(waitid(77, 0, &si, WEXITED));
	SHOW(waitid(P_PID, 0, &si, WEXITED));

	pid_t pid = stay();
	SHOW(waitpid(pid, &status, WNOHANG));
	si.si_pid = 77;
	SHOW(waitid(P_PID, pid, &si, WEXITED | WNOHANG));
	printf("si_pid %d\n", si.si_pid);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitid(P_PID, pid, &si, WEXITED | WNOWAIT) == 0);
	printf("waitid: pid right %d, status %d, code %d, signo %d\n", si.si_pid == pid, si.si_status, si.si_code == CLD_KILLED,
	       si.si_signo == SIGCHLD);
	CHECK(waitid(P_PID, pid, &si, WEXITED | WNOWAIT) == 0);
	CHECK(waitpid(pid, &status, WNOHANG) == pid);
	printf("still there: %s\n", status_text(status));
	SHOW(waitpid(pid, &status, WNOHANG));

	// Any child, in whatever order they end.
	int sum = 0;
	for (int i = 1; i <= 20; i++)
		leave(i);
	for (int i = 1; i <= 20; i++) {
		CHECK(wait(&status) > 0 && WIFEXITED(status));
		sum += WEXITSTATUS(status);
	}
	printf("sum %d\n", sum);
	SHOW(wait(&status));

	// By group: 0 does not select children of another group.
	pid_t other = stay();
	CHECK(setpgid(other, other) == 0);
	pid_t same = leave(8);
	CHECK(waitpid(0, &status, 0) == same);
	printf("own group: %s\n", status_text(status));
	SHOW(waitpid(0, &status, WNOHANG));
	SHOW(waitpid(-other, &status, WNOHANG));
	CHECK(kill(-other, SIGTERM) == 0);
	CHECK(waitid(P_PGID, other, &si, WEXITED | WNOWAIT) == 0 && si.si_pid == other);
	CHECK(waitpid(-other, &status, 0) == other);
	printf("that group: %s\n", status_text(status));

	pid = leave(9);
	CHECK(wait4(pid, &status, 0, &ru) == pid);
	printf("wait4: %s, times sane %d\n", status_text(status), ru.ru_utime.tv_sec < 100 && ru.ru_maxrss > 0);
	pid = leave(10);
	CHECK(wait3(&status, 0, &ru) == pid);
	printf("wait3: %s\n", status_text(status));
	pid = leave(11);
	CHECK(waitpid(pid, NULL, 0) == pid);

	// A child of one thread may be waited for by another.
	pid = stay();
	pthread_t t = start(waiter, &pid);
	nap();
	CHECK(kill(pid, SIGUSR1) == 0);
	printf("by a thread: %s\n", status_text((intptr_t)finish(t)));
	// A grandchild is not our child.
	int ends[2];
	pid_t grandchild;
	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		grandchild = stay();
		CHECK(write(ends[1], &grandchild, sizeof grandchild) == sizeof grandchild);
		CHECK(kill(grandchild, SIGKILL) == 0 && wait_for(grandchild) == SIGKILL);
		_exit(0);
	}
	CHECK(read(ends[0], &grandchild, sizeof grandchild) == sizeof grandchild);
	SHOW(waitpid(grandchild, &status, 0));
	CHECK(wait_for(pid) == 0);
	return 0;
}
