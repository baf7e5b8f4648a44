// F_SETLKW: waiting for another process's lock, EDEADLK for a circle of two, EINTR by a signal.
#include "conformance.h"

static int fd;

static struct flock at(int type, off_t byte)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

static int set(int cmd, int type, off_t byte)
{
	struct flock l = at(type, byte);
	return fcntl(fd, cmd, &l);
}

static bool taken(off_t byte)
{
	struct flock l = at(F_WRLCK, byte);
	CHECK(fcntl(fd, F_GETLK, &l) == 0);
	return l.l_type != F_UNLCK;
}

static void handler(int sig)
{
	(void)sig;
}

int main(void)
{
	fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	int *shared = shared_memory(4096);

	// Four processes take turns under one lock.
	pid_t pid[4];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] != 0)
			continue;
		for (int k = 0; k < 50; k++) {
			CHECK(set(F_SETLKW, F_WRLCK, 0) == 0);
			int v = *(volatile int *)shared;
			if (k % 10 == 0)
				sched_yield();
			*(volatile int *)shared = v + 1;
			CHECK(set(F_SETLKW, F_UNLCK, 0) == 0);
		}
		_exit(0);
	}
	for (int i = 0; i < LEN(pid); i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("counter %d\n", *shared);

	// The child holds 2 and waits for 1; the parent holds 1 and asks for 2:
	// the later request fails with EDEADLK.
	CHECK(set(F_SETLK, F_WRLCK, 1) == 0);
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		CHECK(set(F_SETLK, F_WRLCK, 2) == 0);
		int r = set(F_SETLKW, F_WRLCK, 1);
		CHECK(r == 0 || errno == EDEADLK);
		_exit(r == 0 ? 0 : 1);
	}
	while (!taken(2))
		nap();
	int r = set(F_SETLKW, F_WRLCK, 2), e = errno;
	CHECK(r == 0 || e == EDEADLK);
	CHECK(set(F_SETLK, F_UNLCK, 1) == 0);
	int told = (r != 0) + WEXITSTATUS(wait_for(p));
	printf("told of the deadlock: %d\n", told);

	// A signal ends the wait.
	on_signal(SIGUSR1, handler, 0);
	CHECK(set(F_SETLK, F_UNLCK, 2) == 0);
	CHECK(set(F_SETLK, F_WRLCK, 3) == 0);
	int ends[2];
	CHECK(pipe(ends) == 0);
	p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		r = set(F_SETLKW, F_WRLCK, 3);
		e = r == 0 ? 0 : errno;
		CHECK(write(ends[1], &e, sizeof e) == sizeof e);
		_exit(0);
	}
	CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	while (read(ends[0], &e, sizeof e) != sizeof e) {
		CHECK(kill(p, SIGUSR1) == 0);
		nap();
	}
	printf("signalled: %s\n", errname(e));
	CHECK(wait_for(p) == 0);
	return 0;
}
