// Process groups and sessions: setpgid, getpgid, setsid, getsid and the cases that they refuse; groups whose last member ends.
#include "conformance.h"

static int ends[2], back[2];

static void hear(int fd)
{
	char c;
	CHECK(read(fd, &c, 1) == 1);
}

static void tell(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

static pid_t child(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		hear(ends[0]);
		_exit(0);
	}
	return pid;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		tell(atoi(argv[1]));
		for (;;)
			pause();
	}
	CHECK(pipe(ends) == 0 && pipe(back) == 0);
	CHECK(getpgrp() == getpgid(0) && getpgid(0) == getpgid(getpid()));
	CHECK(getsid(0) == getsid(getpid()));
	pid_t a = child(), b = child();
	CHECK(getpgid(a) == getpgrp() && getsid(a) == getsid(0));
	SHOW(setpgid(a, a));
	printf("leader %d\n", getpgid(a) == a);
	SHOW(setpgid(b, a));
	printf("joined %d\n", getpgid(b) == a);
	SHOW(setpgid(b, getpgrp()));
	printf("back %d\n", getpgid(b) == getpgrp());
	SHOW(setpgid(b, 999999999));
	SHOW(setpgid(b, -1));
	SHOW(setpgid(999999999, 0));
	SHOW(getpgid(999999999));
	SHOW(getsid(999999999));
	tell(ends[1]);
	tell(ends[1]);
	CHECK(wait_for(a) == 0 && wait_for(b) == 0);
	SHOW(kill(-a, 0));

	// After exec a child can no longer be moved.
	pid_t e = fork();
	CHECK(e >= 0);
	if (e == 0) {
		char fd[12];
		snprintf(fd, sizeof fd, "%d", back[1]);
		execl("/proc/self/exe", "again", fd, NULL);
		_exit(1);
	}
	hear(back[0]);
	SHOW(setpgid(e, e));
	CHECK(kill(e, SIGKILL) == 0 && wait_for(e) == SIGKILL);

	// Sessions.
	pid_t s = fork();
	CHECK(s >= 0);
	if (s == 0) {
		CHECK(setsid() == getpid());
		CHECK(getsid(0) == getpid() && getpgrp() == getpid());
		SHOW(setsid());
		SHOW(setpgid(getppid(), 0)); // no child of ours
		SHOW(setpgid(0, 0));
		SHOW(setpgid(0, getppid()));
		pid_t inner = child();
		CHECK(getsid(inner) == getpid() && getpgid(inner) == getpid());
		SHOW(setpgid(inner, inner));
		tell(ends[1]);
		CHECK(wait_for(inner) == 0);
		SHOW(open("/dev/tty", O_RDWR));
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(s)));
	// A group leader cannot start a session.
	s = fork();
	CHECK(s >= 0);
	if (s == 0) {
		CHECK(setpgid(0, 0) == 0);
		SHOW(setsid());
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(s)));
	// Nor can a child be moved into another session's group.
	s = fork();
	CHECK(s >= 0);
	if (s == 0) {
		CHECK(setsid() > 0);
		tell(back[1]);
		hear(ends[0]);
		_exit(0);
	}
	hear(back[0]);
	a = child();
	SHOW(setpgid(a, s));
	SHOW(setpgid(s, getpgrp()));
	tell(ends[1]);
	tell(ends[1]);
	CHECK(wait_for(a) == 0 && wait_for(s) == 0);
	return 0;
}
