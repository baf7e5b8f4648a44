// State that exec keeps or ends: ids, folder, umask, limits, descriptors, locks, names, memory, exit handlers, threads.
#include "conformance.h"

#include <sys/prctl.h>

static void at_end(void)
{
	printf("exit handler\n");
}

static int second(char **argv)
{
	struct rlimit r;
	char cwd[4096], comm[32];
	printf("same pid %d, same parent %d, same group %d\n", getpid() == atoi(argv[1]), getppid() == atoi(argv[2]),
	       getpgrp() == atoi(argv[3]));
	CHECK(getcwd(cwd, sizeof cwd) != NULL);
	printf("folder %s, umask %o\n", strrchr(cwd, '/'), umask(0));
	CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0);
	printf("limit %ld\n", (long)r.rlim_cur);
	char c;
	SHOW(fcntl(10, F_GETFD));
	SHOW(fcntl(11, F_GETFD));
	SHOW(fcntl(12, F_GETFD));
	CHECK(read(10, &c, 1) == 1);
	printf("offset kept: %c\n", c);
	CHECK(prctl(PR_GET_NAME, comm) == 0);
	printf("name reset: %d\n", strcmp(comm, "before") != 0);
	printf("alarm kept: %d\n", alarm(0) > 0);
	printf("dumpable: %d\n", prctl(PR_GET_DUMPABLE));
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(fcntl(10, F_GETLK, &l) == 0);
		printf("lock kept: %d\n", l.l_type == F_WRLCK && l.l_pid == getppid());
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	SHOW(waitpid(-1, NULL, 0) > 0);
	return 0;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return second(argv);
	char id[3][20];
	atexit(at_end);
	CHECK(mkdir("folder", 0755) == 0 && chdir("folder") == 0);
	umask(027);
	struct rlimit r;
	CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0);
	r.rlim_cur = 50;
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
	write_file("file", "0123456789");
	int fd = open("file", O_RDWR);
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	CHECK(dup2(fd, 10) == 10 && dup3(fd, 11, O_CLOEXEC) == 11 && dup2(fd, 12) == 12);
	CHECK(fcntl(12, F_SETFD, FD_CLOEXEC) == 0 && lseek(fd, 4, SEEK_SET) == 4);
	CHECK(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
	CHECK(prctl(PR_SET_NAME, "before") == 0);
	alarm(1000);
	start(idle, NULL);
	// A child that has already ended can still be waited for.
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(3);
	siginfo_t si;
	CHECK(waitid(P_PID, pid, &si, WEXITED | WNOWAIT) == 0);
	// Closing any descriptor of a file drops its POSIX locks, so the lock is taken last.
	CHECK(close(fd) == 0 && close(11) == 0 && close(12) == 0);
	CHECK(dup3(10, 11, O_CLOEXEC) == 11);
	CHECK(close(11) == 0 && fcntl(10, F_SETLK, &l) == 0);
	snprintf(id[0], 20, "%d", getpid());
	snprintf(id[1], 20, "%d", getppid());
	snprintf(id[2], 20, "%d", getpgrp());
	execl("/proc/self/exe", "second", id[0], id[1], id[2], NULL);
	return 1;
}
