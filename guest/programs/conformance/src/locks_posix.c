// POSIX record locks between processes: conflicts, holders, splitting and joining, release by close and exit.
#include "conformance.h"

static int fd, to_child[2], to_parent[2];

static struct flock range(int type, off_t from, off_t len)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = len};
}

static int lock(int type, off_t from, off_t len)
{
	struct flock l = range(type, from, len);
	return fcntl(fd, F_SETLK, &l);
}

// probe shows which bytes from 0 to 15 another process may not write-lock.
static void probe(const char *what, pid_t holder)
{
	printf("%s: ", what);
	for (int i = 0; i < 16; i++) {
		struct flock l = range(F_WRLCK, i, 1);
		CHECK(fcntl(fd, F_GETLK, &l) == 0);
		CHECK(l.l_type == F_UNLCK || l.l_pid == holder);
		printf("%c", l.l_type == F_UNLCK ? '.' : l.l_type == F_RDLCK ? 'r' : 'w');
	}
	printf("\n");
}

static void tell(int p)
{
	CHECK(write(p, "x", 1) == 1);
}

static void hear(int p)
{
	char c;
	CHECK(read(p, &c, 1) == 1);
}

#define STEP(call)                         \
	do {                               \
		CHECK((call) == 0);        \
		tell(to_parent[1]);        \
		hear(to_child[0]);         \
	} while (0)

static void child(void)
{
	hear(to_child[0]);
	STEP(lock(F_WRLCK, 2, 10));
	STEP(lock(F_UNLCK, 5, 3));
	STEP(lock(F_RDLCK, 3, 7));
	STEP(lock(F_WRLCK, 0, 0));
	STEP(lock(F_UNLCK, 4, 0));
	// Closing any descriptor of the file drops all of the process's locks.
	STEP(close(open("file", O_RDONLY)));
	STEP(lock(F_RDLCK, 0, 8));
	_exit(0);
}

int main(void)
{
	fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && pipe(to_child) == 0 && pipe(to_parent) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child();
	static const char *const step[] = {"2 to 11", "without 5 to 7", "3 to 9 for reading", "to the end", "from 4 free",
					   "after close", "0 to 7 for reading"};
	for (int i = 0; i < LEN(step); i++) {
		tell(to_child[1]);
		hear(to_parent[0]);
		probe(step[i], pid);
	}
	SHOW(lock(F_RDLCK, 0, 4));
	SHOW(lock(F_WRLCK, 0, 4));
	SHOW(lock(F_WRLCK, 8, 4));
	SHOW(lockf(fd, F_TEST, 4));
	tell(to_child[1]);
	printf("child: %s\n", status_text(wait_for(pid)));
	SHOW(lock(F_WRLCK, 0, 4));

	// Locks are not inherited, and do not conflict within the process.
	SHOW(lock(F_RDLCK, 0, 100));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		probe("seen by a second child", getppid());
		SHOW(lock(F_WRLCK, 0, 1));
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	int ro = open("file", O_RDONLY);
	struct flock l = range(F_WRLCK, 0, 1);
	SHOW(fcntl(ro, F_SETLK, &l));
	l = range(F_RDLCK, -1, 1);
	SHOW(fcntl(fd, F_SETLK, &l));
	l = range(77, 0, 1);
	SHOW(fcntl(fd, F_SETLK, &l));
	l = range(F_RDLCK, 10, -5);
	SHOW(fcntl(fd, F_SETLK, &l));
	SHOW(fcntl(999, F_SETLK, &l));
	return 0;
}
