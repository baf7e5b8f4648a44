// Orphans: adopted by the nearest subreaper, which reaps them; PR_SET_PDEATHSIG sends a signal when the parent ends.
#include "conformance.h"

#include <sys/prctl.h>

static volatile sig_atomic_t told;

static void handler(int sig)
{
	(void)sig;
	told = 1;
}

int main(void)
{
	int is = 0, status;
	SHOW(prctl(PR_SET_CHILD_SUBREAPER, 1));
	SHOW(prctl(PR_GET_CHILD_SUBREAPER, &is));
	printf("subreaper %d\n", is);
	int ids[2], go[2], born[2];
	char c;
	CHECK(pipe(ids) == 0 && pipe(go) == 0 && pipe(born) == 0);
	pid_t me = getpid(), pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		pid_t middle = getpid(), orphan = fork();
		CHECK(orphan >= 0);
		if (orphan == 0) {
			CHECK(getppid() == middle);
			CHECK(write(born[1], "x", 1) == 1);
			CHECK(read(go[0], &c, 1) == 1);
			// The process in the middle has been reaped by now.
			_exit(getppid() == me ? 17 : 1);
		}
		CHECK(read(born[0], &c, 1) == 1);
		CHECK(write(ids[1], &orphan, sizeof orphan) == sizeof orphan);
		_exit(16);
	}
	printf("middle: %s\n", status_text(wait_for(pid)));
	pid_t orphan;
	CHECK(read(ids[0], &orphan, sizeof orphan) == sizeof orphan);
	CHECK(write(go[1], "x", 1) == 1);
	printf("orphan: %s\n", status_text(wait_for(orphan)));

	// A zombie whose parent dies before waiting for it is adopted as well.
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		orphan = fork();
		CHECK(orphan >= 0);
		if (orphan == 0)
			_exit(18);
		siginfo_t si;
		CHECK(waitid(P_PID, orphan, &si, WEXITED | WNOWAIT) == 0);
		CHECK(write(ids[1], &orphan, sizeof orphan) == sizeof orphan);
		_exit(19);
	}
	printf("middle: %s\n", status_text(wait_for(pid)));
	CHECK(read(ids[0], &orphan, sizeof orphan) == sizeof orphan);
	CHECK(waitpid(orphan, &status, 0) == orphan);
	printf("zombie: %s\n", status_text(status));

	// The parent-death signal.
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		pid_t middle = getpid();
		orphan = fork();
		CHECK(orphan >= 0);
		if (orphan == 0) {
			on_signal(SIGUSR1, handler, 0);
			CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0);
			CHECK(prctl(PR_GET_PDEATHSIG, &is) == 0 && is == SIGUSR1);
			CHECK(getppid() == middle);
			CHECK(write(ids[1], &(pid_t){getpid()}, sizeof orphan) == sizeof orphan);
			while (!told)
				nap();
			_exit(20);
		}
		CHECK(read(go[0], &c, 1) == 1);
		_exit(0);
	}
	CHECK(read(ids[0], &orphan, sizeof orphan) == sizeof orphan);
	CHECK(write(go[1], "x", 1) == 1);
	CHECK(wait_for(pid) == 0);
	printf("told by signal: %s\n", status_text(wait_for(orphan)));
	SHOW(prctl(PR_SET_PDEATHSIG, 77));
	return 0;
}
