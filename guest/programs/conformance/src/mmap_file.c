// File mappings: private copies, offsets, the tail of the last page, access modes that are refused.
#include "conformance.h"

static void *map(size_t n, int prot, int flags, int fd, off_t at)
{
	return mmap(NULL, n, prot, flags, fd, at);
}

static long result(void *p)
{
	return p == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	char buf[5000];
	for (int i = 0; i < (int)sizeof buf; i++)
		buf[i] = 'a' + i % 26;
	CHECK(write(fd, buf, sizeof buf) == sizeof buf);

	char *p = map(sizeof buf, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK(memcmp(p, buf, sizeof buf) == 0);
	for (int i = 5000; i < 8192; i++)
		CHECK(p[i] == 0);
	char *second = map(100, PROT_READ, MAP_PRIVATE, fd, 4096);
	CHECK(second != MAP_FAILED);
	printf("page two begins with %.5s\n", second);

	// The descriptor is not needed any more, and a private write stays private.
	memcpy(p, "PRIVATE", 7);
	CHECK(pread(fd, buf, 7, 0) == 7);
	printf("file %.7s, mapping %.7s\n", buf, p);
	// A page not yet copied follows the file.
	CHECK(pwrite(fd, "SHARED", 6, 4096) == 6);
	printf("file changed: %.6s %.6s\n", p + 4096, second);
	CHECK(pwrite(fd, "HIDDEN", 6, 0) == 6);
	printf("copied page: %.7s\n", p);

	int ro = open("file", O_RDONLY), wo = open("file", O_WRONLY), dir = open(".", O_RDONLY);
	int ends[2];
	CHECK(pipe(ends) == 0);
	SHOW(result(map(4096, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0)));
	SHOW(result(map(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0)));
	SHOW(result(map(4096, PROT_READ, MAP_SHARED, wo, 0)));
	SHOW(result(map(4096, PROT_WRITE, MAP_PRIVATE, wo, 0)));
	SHOW(result(map(4096, PROT_READ, MAP_PRIVATE, dir, 0)));
	SHOW(result(map(4096, PROT_READ, MAP_PRIVATE, ends[0], 0)));
	SHOW(result(map(4096, PROT_READ, MAP_PRIVATE, 999, 0)));
	SHOW(result(map(4096, PROT_READ, MAP_PRIVATE, fd, 100)));
	SHOW(result(map(4096, PROT_READ, 0, fd, 0)));
	SHOW(result(map(4096, PROT_READ, MAP_PRIVATE, fd, 1 << 20)));

	// A shared read-only mapping of a file opened for reading only cannot be
	// made writable later; a private one can.
	void *s = map(4096, PROT_READ, MAP_SHARED, ro, 0);
	CHECK(s != MAP_FAILED);
	SHOW(mprotect(s, 4096, PROT_READ | PROT_WRITE));
	void *v = map(4096, PROT_READ, MAP_PRIVATE, ro, 0);
	CHECK(v != MAP_FAILED);
	SHOW(mprotect(v, 4096, PROT_READ | PROT_WRITE));
	CHECK(close(fd) == 0 && unlink("file") == 0);
	printf("after close and unlink: %.7s\n", p);
	return 0;
}
