// memfd_create: an unnamed file for mapping and sharing over fork; seals on growing, shrinking and writing.
#include "conformance.h"

enum { PAGE = 4096 };

static int make(void)
{
	int fd = memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(fd >= 0);
	CHECK(ftruncate(fd, 2 * PAGE) == 0);
	return fd;
}

static long map(int fd, int prot, int flags)
{
	void *p = mmap(NULL, PAGE, prot, flags, fd, 0);
	if (p == MAP_FAILED)
		return -1;
	CHECK(munmap(p, PAGE) == 0);
	return 0;
}

int main(void)
{
	int fd = make();
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("regular %d, size %ld, links %ld\n", S_ISREG(st.st_mode), (long)st.st_size, (long)st.st_nlink);
	char path[64], target[64] = {0};
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK(readlink(path, target, sizeof target - 1) > 0);
	printf("link %s\n", target);
	SHOW(fcntl(fd, F_GETFD));
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(pwrite(fd, "from the child", 15, 0) == 15);
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	printf("%s\n", p);

	SHOW(fcntl(fd, F_GET_SEALS));
	SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
	SHOW(ftruncate(fd, PAGE));
	SHOW(ftruncate(fd, 3 * PAGE));
	SHOW(pwrite(fd, "x", 1, 2 * PAGE));
	SHOW(pwrite(fd, "x", 1, 0));
	// A seal on writing fails while a writable shared mapping exists.
	SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(munmap(p, PAGE) == 0);
	SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	SHOW(pwrite(fd, "x", 1, 0));
	SHOW(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED));
	SHOW(map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE));
	SHOW(map(fd, PROT_READ, MAP_PRIVATE));
	SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
	SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	SHOW(fcntl(fd, F_GET_SEALS));

	int plain = memfd_create("plain", 0);
	CHECK(plain >= 0);
	SHOW(fcntl(plain, F_GET_SEALS));
	SHOW(fcntl(plain, F_ADD_SEALS, F_SEAL_GROW));
	SHOW(fcntl(plain, F_GETFD));
	SHOW(memfd_create("bad flags", 0x7777));
	write_file("file", "");
	int file = open("file", O_RDWR);
	SHOW(fcntl(file, F_GET_SEALS));
	return 0;
}
