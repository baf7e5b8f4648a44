// Open-file-description locks: between descriptors of one process, between threads, and not dropped by other closes.
#include "conformance.h"

static struct flock whole(int type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

static int set(int fd, int cmd, int type)
{
	struct flock l = whole(type);
	return fcntl(fd, cmd, &l);
}

static int counter;

static void *worker(void *arg)
{
	(void)arg;
	int fd = open("file", O_RDWR);
	CHECK(fd >= 0);
	for (int i = 0; i < 50; i++) {
		CHECK(set(fd, F_OFD_SETLKW, F_WRLCK) == 0);
		int c = counter;
		if (i % 10 == 0)
			sched_yield();
		counter = c + 1;
		CHECK(set(fd, F_OFD_SETLK, F_UNLCK) == 0);
	}
	CHECK(close(fd) == 0);
	return NULL;
}

int main(void)
{
	int a = open("file", O_RDWR | O_CREAT, 0600), b = open("file", O_RDWR), c = dup(a);
	CHECK(a >= 0 && b >= 0 && c >= 0);
	SHOW(set(a, F_OFD_SETLK, F_WRLCK));
	SHOW(set(b, F_OFD_SETLK, F_WRLCK));
	SHOW(set(b, F_OFD_SETLK, F_RDLCK));
	SHOW(set(c, F_OFD_SETLK, F_WRLCK)); // the same description
	struct flock l = whole(F_RDLCK);
	SHOW(fcntl(b, F_OFD_GETLK, &l));
	printf("type %d, pid %d\n", l.l_type == F_WRLCK, l.l_pid);
	// POSIX locks conflict with them as well.
	SHOW(set(b, F_SETLK, F_RDLCK));
	SHOW(close(open("file", O_RDONLY)));
	SHOW(set(b, F_OFD_SETLK, F_RDLCK));
	SHOW(close(a));
	SHOW(set(b, F_OFD_SETLK, F_RDLCK));
	SHOW(close(c));
	SHOW(set(b, F_OFD_SETLK, F_RDLCK));
	SHOW(set(b, F_OFD_SETLK, F_UNLCK));
	l = whole(F_RDLCK);
	l.l_pid = 1;
	SHOW(fcntl(b, F_OFD_SETLK, &l));

	// A child's copy keeps the lock alive.
	SHOW(set(b, F_OFD_SETLK, F_WRLCK));
	int ends[2];
	char x;
	CHECK(pipe(ends) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(close(ends[1]) == 0);
		CHECK(read(ends[0], &x, 1) == 0);
		_exit(0);
	}
	CHECK(close(b) == 0);
	a = open("file", O_RDWR);
	SHOW(set(a, F_OFD_SETLK, F_WRLCK));
	CHECK(close(ends[1]) == 0);
	CHECK(wait_for(pid) == 0);
	SHOW(set(a, F_OFD_SETLK, F_WRLCK));
	CHECK(close(a) == 0);

	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(worker, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("counter %d\n", counter);
	return 0;
}
