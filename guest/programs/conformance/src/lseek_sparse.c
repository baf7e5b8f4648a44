// lseek with every whence, data and holes of a sparse file, offsets beyond four gigabytes, refused positions.
#include "conformance.h"

enum { MB = 1 << 20 };

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	SHOW(lseek(fd, 100, SEEK_SET));
	SHOW(lseek(fd, 50, SEEK_CUR));
	SHOW(lseek(fd, -200, SEEK_CUR));
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(lseek(fd, -1, SEEK_END));
	SHOW(lseek(fd, -1, SEEK_SET));
	SHOW(lseek(fd, 0, 77));
	SHOW(lseek(999, 0, SEEK_SET));

	static char block[65536];
	memset(block, 'd', sizeof block);
	CHECK(pwrite(fd, block, sizeof block, 1 * MB) == sizeof block);
	CHECK(pwrite(fd, block, sizeof block, 3 * MB) == sizeof block);
	CHECK(ftruncate(fd, 5 * MB) == 0);
	SHOW(lseek(fd, 0, SEEK_DATA));
	SHOW(lseek(fd, 0, SEEK_HOLE));
	SHOW(lseek(fd, 1 * MB, SEEK_DATA));
	SHOW(lseek(fd, 1 * MB + 5, SEEK_DATA));
	SHOW(lseek(fd, 1 * MB, SEEK_HOLE));
	SHOW(lseek(fd, 2 * MB, SEEK_DATA));
	SHOW(lseek(fd, 3 * MB, SEEK_HOLE));
	SHOW(lseek(fd, 4 * MB, SEEK_DATA));
	SHOW(lseek(fd, 4 * MB, SEEK_HOLE));
	SHOW(lseek(fd, 5 * MB, SEEK_DATA));
	SHOW(lseek(fd, 5 * MB, SEEK_HOLE));
	SHOW(lseek(fd, -1, SEEK_DATA));

	// Large offsets.
	off_t far = 1ll << 40;
	CHECK(pwrite(fd, "far", 3, far) == 3);
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("size %lld, sparse %d\n", (long long)st.st_size, st.st_blocks < 10000);
	char buf[4] = {0};
	CHECK(lseek(fd, far, SEEK_SET) == far && read(fd, buf, 3) == 3);
	printf("%s\n", buf);
	CHECK(pread(fd, buf, 3, far - 2) == 3);
	printf("%d %d %c\n", buf[0], buf[1], buf[2]);
	CHECK(pread(fd, buf, 3, 1ll << 35) == 3);
	printf("%d %d %d\n", buf[0], buf[1], buf[2]);
	CHECK(lseek(fd, 6 * MB, SEEK_DATA) == far);
	printf("next data there\n");
	return 0;
}
