// Shared futexes: one page mapped twice is one futex, between threads, through a file and between processes.
#include "futex.h"

static void *sleeper(void *arg)
{
	return (void *)futex(arg, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void wake_via(const char *name, atomic_uint *sleep_on, atomic_uint *wake_on)
{
	pthread_t t = start(sleeper, sleep_on);
	while (futex(wake_on, FUTEX_WAKE, 1, NULL, NULL, 0) == 0)
		sched_yield();
	printf("%s: %ld\n", name, (long)finish(t));
}

static atomic_uint *map(int fd, off_t at)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	CHECK(p != MAP_FAILED);
	return p;
}

int main(void)
{
	int fd = memfd_create("shared", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
	atomic_uint *one = map(fd, 0), *two = map(fd, 0), *other = map(fd, 4096);
	wake_via("two mappings of a memfd", &one[3], &two[3]);
	CHECK(futex(&two[4], FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	CHECK(futex(&other[3], FUTEX_WAKE, 1, NULL, NULL, 0) == 0);

	int file = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(file >= 0 && ftruncate(file, 4096) == 0);
	int again = open("file", O_RDWR);
	wake_via("two mappings of a file", map(file, 0), map(again, 0));

	// A child sleeps, the parent wakes it, and the other way round.
	atomic_uint *s = shared_memory(4096);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (futex(&s[0], FUTEX_WAIT, 0, NULL, NULL, 0) != 0)
			_exit(1);
		while (futex(&two[8], FUTEX_WAKE, 1, NULL, NULL, 0) == 0)
			sched_yield();
		_exit(0);
	}
	while (futex(&s[0], FUTEX_WAKE, 1, NULL, NULL, 0) == 0)
		sched_yield();
	SHOW(futex(&one[8], FUTEX_WAIT, 0, NULL, NULL, 0));
	printf("child: %s\n", status_text(wait_for(pid)));
	return 0;
}
