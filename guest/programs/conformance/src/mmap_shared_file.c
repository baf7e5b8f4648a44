// Shared file mappings: one page for read, write, several mappings and processes; growth and truncation.
#include "conformance.h"

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
	char *a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	char *ro = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(a != MAP_FAILED && b != MAP_FAILED && ro != MAP_FAILED);
	char buf[20] = {0};

	strcpy(a + 4096, "by mapping");
	printf("second mapping: %s\n", b);
	printf("private mapping: %s\n", ro + 4096);
	CHECK(pread(fd, buf, 11, 4096) == 11);
	printf("read: %s\n", buf);
	CHECK(pwrite(fd, "by write", 9, 4096) == 9);
	printf("mapping after write: %s\n", a + 4096);

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		strcpy(b, "by child");
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	printf("after the child: %s\n", a + 4096);

	int other = open("file", O_RDONLY);
	CHECK(other >= 0 && unlink("file") == 0);
	strcpy(a, "unlinked");
	CHECK(pread(other, buf, 9, 0) == 9);
	printf("other descriptor: %s\n", buf);

	// After truncation and growth the part that was cut off is zero.
	CHECK(ftruncate(fd, 4100) == 0);
	printf("cut: %.8s, %d\n", b, b[5]);
	CHECK(ftruncate(fd, 8192) == 0);
	printf("grown: %.8s, %d\n", b, b[5]);
	CHECK(ftruncate(fd, 4096) == 0);
	CHECK(ftruncate(fd, 8192) == 0);
	printf("empty: %d\n", b[0]);

	// The file grows under a longer mapping.
	char *tail = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(tail != MAP_FAILED);
	CHECK(ftruncate(fd, 5 * 4096) == 0);
	strcpy(tail + 4 * 4096, "tail");
	CHECK(munmap(tail, 5 * 4096) == 0);
	CHECK(pread(fd, buf, 5, 4 * 4096) == 5);
	printf("%s\n", buf);
	return 0;
}
