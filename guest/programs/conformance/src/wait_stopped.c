// Stopping and continuing: WUNTRACED, WCONTINUED, WSTOPPED, WNOWAIT; each state is reported once; kill while stopped.
#include "conformance.h"

static pid_t child(atomic_long *counter)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	while (pid == 0) {
		(*counter)++;
		sched_yield();
	}
	return pid;
}

int main(void)
{
	atomic_long *counter = shared_memory(4096);
	int status;
	siginfo_t si;
	pid_t pid = child(counter);
	while (*counter == 0)
		nap();
	CHECK(kill(pid, SIGSTOP) == 0);
	CHECK(waitid(P_PID, pid, &si, WSTOPPED | WNOWAIT) == 0);
	printf("waitid: code %d, status %d\n", si.si_code == CLD_STOPPED, si.si_status == SIGSTOP);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	printf("%s\n", status_text(status));
	SHOW(waitpid(pid, &status, WUNTRACED | WNOHANG));
	long before = *counter;
	for (int i = 0; i < 10; i++)
		nap();
	printf("stands still: %d\n", *counter == before);

	// Other signals stay pending until the process continues, SIGTERM too.
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(waitid(P_PID, pid, &si, WCONTINUED | WNOWAIT) == 0);
	printf("waitid: code %d, status %d\n", si.si_code == CLD_CONTINUED, si.si_status == SIGCONT);
	CHECK(waitpid(pid, &status, WCONTINUED) == pid);
	printf("%s\n", status_text(status));
	SHOW(waitpid(pid, &status, WCONTINUED | WNOHANG));
	while (*counter < before + 10)
		nap();
	printf("runs again\n");
	CHECK(kill(pid, SIGTSTP) == 0);
	// Either it stops, or, its group being orphaned, the signal has no effect.
	for (int i = 0; i < 3; i++) {
		CHECK(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		CHECK(kill(pid, SIGTERM) == 0);
		SHOW(waitpid(pid, &status, WNOHANG));
		if (i < 2) {
			CHECK(kill(pid, SIGCONT) == 0);
			printf("continued, then: %s\n", status_text(wait_for(pid)));
			pid = child(counter);
		}
	}
	CHECK(kill(pid, SIGKILL) == 0);
	printf("killed while stopped: %s\n", status_text(wait_for(pid)));

	// All threads of a process stop and continue together.
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(6);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	printf("%s\n", status_text(status));
	CHECK(kill(pid, SIGCONT) == 0);
	printf("%s\n", status_text(wait_for(pid)));
	return 0;
}
