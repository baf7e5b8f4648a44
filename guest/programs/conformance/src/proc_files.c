// /proc/self: exe, fd, task, status, stat, cmdline and environ agree with the program's own state.
#include "conformance.h"

#include <dirent.h>

static char buf[65536];

static long field(const char *name)
{
	CHECK(read_file("/proc/self/status", buf, sizeof buf) > 0);
	size_t n = strlen(name);
	for (char *line = buf; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			return strtol(line + n + 1, NULL, 10);
	return -1;
}

static int entries(const char *path)
{
	int n = 0;
	struct dirent *e;
	DIR *d = opendir(path);
	CHECK(d != NULL);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	CHECK(closedir(d) == 0);
	return n;
}

static pthread_barrier_t bar;

static void *idle(void *arg)
{
	pthread_barrier_wait(&bar);
	pthread_barrier_wait(&bar);
	return arg;
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		// Known arguments, environment and name.
		char *args[] = {"first", "second argument", "", NULL};
		char *env[] = {"ONE=1", "TWO=two words", NULL};
		execve("/proc/self/exe", args, env);
		CHECK(false);
	}
	ssize_t n = read_file("/proc/self/cmdline", buf, sizeof buf);
	for (int i = 0; i < n; i++)
		putchar(buf[i] ? buf[i] : '|');
	putchar('\n');
	n = read_file("/proc/self/environ", buf, sizeof buf);
	for (int i = 0; i < n; i++)
		putchar(buf[i] ? buf[i] : '|');
	putchar('\n');
	printf("argv %d: %s\n", argc, argv[1]);

	CHECK(field("Pid") == getpid());
	CHECK(field("Tgid") == getpid());
	CHECK(field("PPid") == getppid());
	CHECK(field("Uid") == getuid() && field("Gid") == getgid());
	CHECK(field("VmSize") > 0 && field("VmRSS") > 0);
	printf("threads %ld\n", field("Threads"));
	OK(pthread_barrier_init(&bar, NULL, 4));
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(idle, NULL);
	pthread_barrier_wait(&bar);
	printf("threads %ld, tasks %d\n", field("Threads"), entries("/proc/self/task"));
	pthread_barrier_wait(&bar);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);

	int pid, ppid, pgrp, sid;
	char state, comm[64];
	CHECK(read_file("/proc/self/stat", buf, sizeof buf) > 0);
	CHECK(sscanf(buf, "%d (%63[^)]) %c %d %d %d", &pid, comm, &state, &ppid, &pgrp, &sid) == 6);
	CHECK(pid == getpid() && ppid == getppid() && pgrp == getpgrp() && sid == getsid(0));
	printf("state %c\n", state);

	int before = entries("/proc/self/fd");
	int fd = open("/dev/null", O_RDONLY);
	printf("one more descriptor: %d\n", entries("/proc/self/fd") - before);
	char path[64], target[256] = {0};
	snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), fd);
	CHECK(readlink(path, target, sizeof target - 1) > 0);
	printf("%s\n", target);
	CHECK(close(fd) == 0);
	SHOW(readlink(path, target, sizeof target));
	int ends[2];
	CHECK(pipe(ends) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
	CHECK(readlink(path, target, sizeof target - 1) > 0);
	printf("%.6s\n", target);

	struct stat a, b;
	CHECK(stat("/proc/self/exe", &a) == 0);
	memset(buf, 0, sizeof buf);
	CHECK(readlink("/proc/self/exe", buf, sizeof buf - 1) > 0 && stat(buf, &b) == 0);
	printf("exe is the program: %d\n", a.st_ino == b.st_ino && buf[0] == '/');
	SHOW(access("/proc/999999999", F_OK));
	SHOW(open("/proc/self/no-such-file", O_RDONLY));

	// The number of processors in cpuinfo is the one that the C library counts.
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[8192];
	int cpus = 0;
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		cpus += strncmp(line, "processor", 9) == 0;
	CHECK(fclose(f) == 0);
	CHECK(cpus >= 1 && cpus == sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(read_file("/proc/meminfo", buf, sizeof buf) > 0 && strncmp(buf, "MemTotal:", 9) == 0);
	CHECK(read_file("/proc/uptime", buf, sizeof buf) > 0);
	CHECK(read_file("/proc/loadavg", buf, sizeof buf) > 0);
	CHECK(read_file("/proc/version", buf, sizeof buf) > 0 && strncmp(buf, "Linux version ", 14) == 0);
	CHECK(read_file("/proc/sys/kernel/pid_max", buf, sizeof buf) > 0 && atoi(buf) > 300);
	return 0;
}
