// flock: shared and exclusive, between descriptors, dup and fork share, conversion, blocking between processes.
#include "conformance.h"

#include <sys/file.h>

int main(void)
{
	int a = open("file", O_RDWR | O_CREAT, 0600), b = open("file", O_RDONLY), c = dup(a);
	CHECK(a >= 0 && b >= 0 && c >= 0);
	SHOW(flock(a, LOCK_SH));
	SHOW(flock(b, LOCK_SH | LOCK_NB));
	SHOW(flock(b, LOCK_EX | LOCK_NB));
	SHOW(flock(a, LOCK_UN));
	SHOW(flock(b, LOCK_EX | LOCK_NB));
	SHOW(flock(a, LOCK_SH | LOCK_NB));
	SHOW(flock(b, LOCK_SH | LOCK_NB));
	SHOW(flock(a, LOCK_SH | LOCK_NB));
	SHOW(flock(b, LOCK_UN));
	SHOW(flock(c, LOCK_EX | LOCK_NB)); // the same lock as a's
	SHOW(flock(b, LOCK_SH | LOCK_NB));
	SHOW(close(a));
	SHOW(flock(b, LOCK_SH | LOCK_NB));
	SHOW(flock(c, LOCK_UN));
	SHOW(flock(b, LOCK_SH | LOCK_NB));
	SHOW(flock(b, LOCK_UN));
	SHOW(flock(b, 77));
	SHOW(flock(999, LOCK_SH));

	int *counter = shared_memory(4096);
	pid_t pid[3];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] != 0)
			continue;
		int fd = open("file", O_RDWR);
		for (int k = 0; k < 50; k++) {
			CHECK(flock(fd, LOCK_EX) == 0);
			int v = *(volatile int *)counter;
			if (k % 10 == 0)
				sched_yield();
			*(volatile int *)counter = v + 1;
			CHECK(flock(fd, LOCK_UN) == 0);
		}
		_exit(0);
	}
	for (int i = 0; i < LEN(pid); i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("counter %d\n", *counter);
	// A process's death frees its lock.
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		int fd = open("file", O_RDWR);
		CHECK(flock(fd, LOCK_EX) == 0);
		_exit(0);
	}
	CHECK(wait_for(p) == 0);
	SHOW(flock(b, LOCK_EX | LOCK_NB));
	return 0;
}
