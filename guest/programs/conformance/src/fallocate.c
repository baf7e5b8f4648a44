// fallocate: allocation, KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE where the file system has it, posix_fallocate, refusals.
#include "conformance.h"

enum { PAGE = 4096 };

static int fd;

static void show(const char *what)
{
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("%s: size %ld, ", what, (long)st.st_size);
	for (off_t at = 0; at < st.st_size; at += PAGE) {
		char c;
		CHECK(pread(fd, &c, 1, at) == 1);
		printf("%c", c ? c : '0');
	}
	printf("\n");
}

int main(void)
{
	fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	SHOW(fallocate(fd, 0, 0, 3 * PAGE));
	show("allocated");
	for (int i = 0; i < 3; i++)
		CHECK(pwrite(fd, &(char){'a' + i}, 1, i * PAGE) == 1);
	SHOW(fallocate(fd, 0, PAGE, PAGE));
	show("nothing lost");
	SHOW(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10 * PAGE));
	show("size kept");
	SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
	show("punched");
	SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, PAGE));
	if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 2 * PAGE, 2 * PAGE) != 0) {
		CHECK(errno == EOPNOTSUPP);
		CHECK(pwrite(fd, "\0", 1, 2 * PAGE) == 1 && ftruncate(fd, 4 * PAGE) == 0);
	}
	show("zeroed");
	SHOW(posix_fallocate(fd, 5 * PAGE, 100));
	show("posix_fallocate");
	SHOW(fallocate(fd, 0, -1, PAGE));
	SHOW(fallocate(fd, 0, 0, 0));
	SHOW(fallocate(fd, 0x7000, 0, PAGE));
	SHOW(fallocate(999, 0, 0, PAGE));
	int ro = open("file", O_RDONLY), ends[2];
	CHECK(pipe(ends) == 0);
	SHOW(fallocate(ro, 0, 0, PAGE));
	SHOW(fallocate(ends[1], 0, 0, PAGE));
	SHOWE(posix_fallocate(ro, 0, PAGE));
	SHOWE(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
	SHOWE(posix_fadvise(fd, 0, 0, 77));
	SHOWE(posix_fadvise(ends[0], 0, 0, POSIX_FADV_NORMAL));
	SHOWE(posix_fadvise(999, 0, 0, POSIX_FADV_NORMAL));
	SHOW(readahead(fd, 0, PAGE));
	return 0;
}
