// msync with each flag on file mappings, on anonymous memory and over holes; the file gets the contents of the mapping.
#include "conformance.h"

enum { PAGE = 4096 };

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	strcpy(p + PAGE, "synced");
	SHOW(msync(p, 4 * PAGE, MS_SYNC));
	SHOW(msync(p, 4 * PAGE, MS_ASYNC));
	SHOW(msync(p, 4 * PAGE, MS_SYNC | MS_INVALIDATE));
	SHOW(msync(p, 0, MS_SYNC));
	SHOW(msync(p, 100, MS_SYNC));
	SHOW(msync(p + 1, PAGE, MS_SYNC));
	SHOW(msync(p, PAGE, MS_SYNC | MS_ASYNC));
	SHOW(msync(p, PAGE, 77));
	SHOW(fsync(fd));
	SHOW(fdatasync(fd));
	SHOW(sync_file_range(fd, 0, PAGE, SYNC_FILE_RANGE_WRITE));
	char buf[10];
	CHECK(pread(fd, buf, 7, PAGE) == 7);
	printf("%s\n", buf);
	CHECK(munmap(p + PAGE, PAGE) == 0);
	SHOW(msync(p, 4 * PAGE, MS_SYNC));
	char *a = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SHOW(msync(a, PAGE, MS_SYNC));
	SHOW(fsync(999));
	return 0;
}
