// getrlimit, setrlimit and prlimit: soft and hard limits, over fork and exec, of a child, refusals.
#include "conformance.h"

static void show(const char *what, int which)
{
	struct rlimit r;
	CHECK(getrlimit(which, &r) == 0);
	printf("%s: %ld %ld\n", what, (long)r.rlim_cur, (long)r.rlim_max);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		show("after exec", RLIMIT_NOFILE);
		return 0;
	}
	struct rlimit r, old;
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		CHECK(getrlimit(i, &r) == 0);
		CHECK(r.rlim_cur <= r.rlim_max);
	}
	SHOW(setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, 200}));
	show("nofile", RLIMIT_NOFILE);
	SHOW(setrlimit(RLIMIT_NOFILE, &(struct rlimit){200, 200}));
	SHOW(setrlimit(RLIMIT_NOFILE, &(struct rlimit){201, 200}));
	show("nofile", RLIMIT_NOFILE);
	SHOW(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	SHOW(prlimit(0, RLIMIT_NOFILE, &(struct rlimit){64, 200}, &old));
	printf("old %ld %ld\n", (long)old.rlim_cur, (long)old.rlim_max);
	SHOW(prlimit(0, RLIMIT_NOFILE, NULL, &old));
	printf("now %ld\n", (long)old.rlim_cur);
	printf("sysconf %ld, getdtablesize %d\n", sysconf(_SC_OPEN_MAX), getdtablesize());

	int ends[2], up[2];
	char c;
	CHECK(pipe(ends) == 0 && pipe(up) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		show("child", RLIMIT_NOFILE);
		CHECK(write(up[1], "x", 1) == 1);
		CHECK(close(ends[1]) == 0);
		CHECK(read(ends[0], &c, 1) == 0);
		show("set from outside", RLIMIT_NOFILE);
		execl("/proc/self/exe", "again", "exec", NULL);
		_exit(1);
	}
	CHECK(read(up[0], &c, 1) == 1);
	SHOW(prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){32, 200}, &old));
	printf("child's %ld\n", (long)old.rlim_cur);
	CHECK(close(ends[1]) == 0);
	CHECK(wait_for(pid) == 0);
	show("parent", RLIMIT_NOFILE);
	SHOW(prlimit(999999999, RLIMIT_NOFILE, NULL, &old));
	SHOW(prlimit(0, 77, NULL, &old));
	SHOW(getrlimit(-1, &old));

	// The stack limit is the size of default thread stacks.
	CHECK(getrlimit(RLIMIT_STACK, &r) == 0);
	pthread_attr_t a;
	size_t size;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_getstacksize(&a, &size));
	printf("default thread stack is the stack limit: %d\n", r.rlim_cur == RLIM_INFINITY || size == r.rlim_cur);
	return 0;
}
