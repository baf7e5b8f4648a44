// Process 1 exists, is not one of the program's, and inherits its orphans unless a nearer ancestor is a subreaper.
#include "conformance.h"

#include <dirent.h>
#include <sys/prctl.h>

static pid_t first;

static void orphan(int out)
{
	while (getppid() == first)
		nap();
	pid_t parent = getppid();
	char text[200];
	// The new parent may be another subreaper.
	snprintf(text, sizeof text, "orphan: not the grandparent's %d, has a parent %d, may not wait %d\n", parent != first,
		 kill(parent, 0) == 0 || errno == EPERM, waitpid(parent, NULL, 0) == -1 && errno == ECHILD);
	CHECK(write(out, text, strlen(text)) == (ssize_t)strlen(text));
	_exit(0);
}

static void orphans(void)
{
	int p[2];
	CHECK(pipe(p) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		first = getpid();
		pid_t grandchild = fork();
		CHECK(grandchild >= 0);
		if (grandchild == 0)
			orphan(p[1]);
		_exit(0);
	}
	CHECK(close(p[1]) == 0);
	CHECK(wait_for(child) == 0);
	char buf[300] = "";
	ssize_t n = read(p[0], buf, sizeof buf - 1);
	CHECK(n > 0);
	printf("%s", buf);
	CHECK(close(p[0]) == 0);
	SHOW(waitpid(-1, NULL, 0));
}

// A chain of processes; the second is a subreaper until it ends.
static void reapers(void)
{
	SHOW(prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid_t above = getpid();
	int p[2], go[2];
	CHECK(pipe(p) == 0 && pipe(go) == 0);
	pid_t middle = fork();
	CHECK(middle >= 0);
	if (middle == 0) {
		int reaper = 2;
		CHECK(prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper == 0);
		CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
		pid_t parent = fork();
		CHECK(parent >= 0);
		if (parent == 0) {
			pid_t me = getpid(), middle = getppid(), leaf = fork();
			CHECK(leaf >= 0);
			if (leaf == 0) {
				while (getppid() == me)
					nap();
				CHECK(getppid() == middle);
				CHECK(write(p[1], "m", 1) == 1);
				while (getppid() == middle)
					nap();
				CHECK(getppid() == above);
				CHECK(write(p[1], "a", 1) == 1);
				_exit(5);
			}
			_exit(0);
		}
		CHECK(waitpid(parent, NULL, 0) == parent);
		char c;
		CHECK(read(go[0], &c, 1) == 1);
		_exit(0);
	}
	CHECK(close(p[1]) == 0);
	char c[3] = "";
	CHECK(read(p[0], c, 1) == 1);
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(waitpid(middle, NULL, 0) == middle);
	CHECK(read(p[0], c + 1, 1) == 1);
	int status;
	CHECK(wait(&status) > 0);
	printf("inherited by %s, ended with %s\n", c, status_text(status));
	SHOW(prctl(PR_SET_CHILD_SUBREAPER, 0));
}

static void listed(void)
{
	DIR *d = opendir("/proc");
	CHECK(d != NULL);
	int one = 0, self = 0, parent = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		int pid = atoi(e->d_name);
		one += pid == 1;
		self += pid == getpid();
		parent += pid == getppid();
	}
	closedir(d);
	printf("listed: 1 %d, self %d, parent %d\n", one, self, parent);
}

int main(void)
{
	char buf[4096];
	CHECK(getpid() != 1 && getppid() != 0);
	SHOW(kill(1, 0) == 0 || errno == EPERM);
	SHOW(kill(getppid(), 0) == 0 || errno == EPERM);
	SHOW(syscall(SYS_tgkill, 1, 1, 0) == 0 || errno == EPERM);
	SHOW(syscall(SYS_tgkill, 1, getpid(), 0));
	SHOW(kill(1, 99));
	SHOW(getpgid(1) >= 0);
	SHOW(getsid(1) >= 0);
	SHOW(getpriority(PRIO_PROCESS, 1) >= -20);
	SHOW(sched_getscheduler(1) >= 0);
	cpu_set_t set;
	SHOW(sched_getaffinity(1, sizeof set, &set));
	SHOW(setpgid(1, 1));
	SHOW(waitpid(1, NULL, WNOHANG));
	SHOW(read_file("/proc/1/comm", buf, sizeof buf) > 1);
	SHOW(read_file("/proc/1/stat", buf, sizeof buf) > 0 && strncmp(buf, "1 (", 3) == 0 && strstr(buf, ") S 0 ") != NULL);
	SHOW(read_file("/proc/1/status", buf, sizeof buf) > 0 && strstr(buf, "\nPid:\t1\nPPid:\t0\n") != NULL);
	SHOW(read_file("/proc/1/cmdline", buf, sizeof buf) > 1);
	SHOW(access("/proc/1/task/1/stat", F_OK));
	listed();
	orphans();
	reapers();
	return 0;
}
