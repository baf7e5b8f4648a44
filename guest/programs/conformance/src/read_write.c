// read and write in all forms: positions, vectors, ends of files, lengths of zero, refused arguments.
#include "conformance.h"

#include <sys/uio.h>

int main(void)
{
	char a[11] = {0}, b[11] = {0}, c[11] = {0};
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	SHOW(write(fd, "0123456789", 10));
	SHOW(write(fd, "", 0));
	SHOW(read(fd, a, 10));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(pread(fd, a, 4, 3));
	SHOW(pwrite(fd, "AB", 2, 4));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(pread(fd, a, 10, 0));
	printf("%s\n", a);
	SHOW(pread(fd, a, 10, 8));
	SHOW(pread(fd, a, 10, 10));
	SHOW(pread(fd, a, 10, 100));
	SHOW(pread(fd, a, 1, -1));
	SHOW(pwrite(fd, a, 1, -1));

	struct iovec v[3] = {{a, 2}, {b, 0}, {c, 5}};
	memset(a, 0, sizeof a);
	SHOW(lseek(fd, 1, SEEK_SET));
	SHOW(readv(fd, v, 3));
	printf("%.2s %.5s\n", a, c);
	SHOW(readv(fd, v, 3));
	printf("%.2s\n", a);
	SHOW(writev(fd, (struct iovec[]){{"x", 1}, {"", 0}, {"yz", 2}}, 3));
	SHOW(preadv(fd, v, 3, 8));
	printf("%.2s %.5s\n", a, c);
	SHOW(pwritev(fd, (struct iovec[]){{"P", 1}, {"Q", 1}}, 2, 0));
	SHOW(preadv2(fd, v, 1, 0, 0));
	printf("%.2s\n", a);
	SHOW(pwritev2(fd, (struct iovec[]){{"R", 1}}, 1, 1, RWF_SYNC));
	SHOW(lseek(fd, 0, SEEK_SET));
	SHOW(preadv2(fd, v, 1, -1, 0));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(readv(fd, v, 0));
	volatile int negative = -1, many = 1025;
	SHOW(readv(fd, v, negative));
	SHOW(readv(fd, v, many));
	v[0].iov_len = -1;
	SHOW(readv(fd, v, 1));

	// A write beyond the end leaves a hole of zeroes.
	SHOW(pwrite(fd, "end", 3, 20));
	char whole[40] = {1};
	ssize_t n = pread(fd, whole, sizeof whole, 0);
	for (int i = 0; i < n; i++)
		printf("%c", whole[i] ? whole[i] : '.');
	printf("\n");

	// Appending ignores the position, pwrite's included.
	int ap = open("file", O_WRONLY | O_APPEND);
	SHOW(pwrite(ap, "!", 1, 0));
	SHOW(lseek(ap, 0, SEEK_END));

	// RWF_APPEND of one write does the same, and does not move the position if an offset is given.
	SHOW(pwritev2(fd, (struct iovec[]){{"S", 1}}, 1, 0, RWF_APPEND));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(pwritev2(fd, (struct iovec[]){{"TU", 2}}, 1, -1, RWF_APPEND | RWF_DSYNC));
	SHOW(lseek(fd, 0, SEEK_CUR));
	n = pread(fd, whole, sizeof whole, 20);
	printf("%.*s\n", (int)n, whole);
	v[0].iov_len = 2;
	SHOW(preadv2(fd, v, 1, 20, RWF_APPEND));
	printf("%.2s\n", a);

	// Flags that Linux does not have are refused after everything else, and not for no bytes.
	int unknown = 1 << 20;
	SHOW(preadv2(fd, v, 1, 0, unknown));
	SHOW(pwritev2(fd, v, 1, 0, unknown));
	SHOW(preadv2(fd, v + 1, 1, 0, unknown));
	SHOW(preadv2(999, v, 1, 0, unknown));
	SHOW(preadv2(ap, v, 1, 0, unknown));
	SHOW(preadv2(fd, v, negative, 0, unknown));
	SHOW(preadv2(fd, v, 1, -2, unknown));
	SHOW(preadv2(999, v, 1, -2, 0));

	SHOW(read(999, a, 1));
	SHOW(write(-1, a, 1));
	SHOW(read(ap, a, 1));
	int dir = open(".", O_RDONLY);
	SHOW(read(dir, a, 1));
	SHOW(pread(dir, a, 1, 0));
	int ends[2];
	CHECK(pipe(ends) == 0);
	SHOW(pread(ends[0], a, 1, 0));
	SHOW(pwrite(ends[1], a, 1, 0));
	SHOW(preadv2(ends[0], v, 1, 0, unknown));
	SHOW(lseek(ends[0], 0, SEEK_SET));
	SHOW(write(ends[0], a, 1));
	SHOW(read(ends[1], a, 1));
	return 0;
}
