// mremap of file mappings: moved and grown mappings still show the file, shared ones still write it.
#include "conformance.h"

enum { PAGE = 4096 };

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	for (int i = 0; i < 8; i++)
		CHECK(pwrite(fd, &(char){'A' + i}, 1, i * PAGE) == 1);
	CHECK(ftruncate(fd, 8 * PAGE) == 0);

	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	CHECK(p != MAP_FAILED);
	char *q = mremap(p, 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	for (int i = 0; i < 6; i++)
		printf("%c", q[i * PAGE]);
	printf("\n");
	q[5 * PAGE] = 'x';
	char c;
	CHECK(pread(fd, &c, 1, 6 * PAGE) == 1);
	printf("written through: %c\n", c);

	char *v = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(v != MAP_FAILED);
	v[PAGE] = 'y';
	char *w = mremap(v, 3 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
	CHECK(w != MAP_FAILED);
	for (int i = 0; i < 5; i++)
		printf("%c", w[i * PAGE]);
	printf("\n");
	CHECK(pread(fd, &c, 1, PAGE) == 1);
	printf("file keeps %c\n", c);
	// Page 2 of the private mapping, moved on its own.
	char *to = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *m = mremap(w + 2 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(m == to);
	printf("moved page %c\n", *m);
	return 0;
}
