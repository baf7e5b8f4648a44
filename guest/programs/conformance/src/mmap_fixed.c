// MAP_FIXED replaces existing mappings, MAP_FIXED_NOREPLACE refuses; holes and neighbours stay as they were.
#include "conformance.h"

enum { PAGE = 4096 };

static char *base;

static long at(int page, int pages, int flags)
{
	void *p = mmap(base + page * PAGE, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (p == MAP_FAILED)
		return -1;
	CHECK(p == base + page * PAGE);
	return page;
}

static void show(const char *what)
{
	printf("%s:", what);
	for (int i = 0; i < 8; i++) {
		unsigned char v;
		if (mincore(base + i * PAGE, PAGE, &v) == 0)
			printf(" %d", base[i * PAGE]);
		else
			printf(" -");
	}
	printf("\n");
}

int main(void)
{
	base = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED);
	for (int i = 0; i < 8; i++)
		base[i * PAGE] = i + 1;
	show("start");
	SHOW(at(2, 2, MAP_FIXED));
	show("two replaced");
	SHOW(munmap(base + 5 * PAGE, 2 * PAGE));
	show("hole");
	SHOW(at(5, 1, MAP_FIXED_NOREPLACE));
	SHOW(at(5, 2, MAP_FIXED_NOREPLACE));
	SHOW(at(4, 2, MAP_FIXED_NOREPLACE));
	SHOW(at(7, 1, MAP_FIXED_NOREPLACE));
	SHOW(at(6, 1, MAP_FIXED_NOREPLACE));
	show("filled");
	SHOW(munmap(base + PAGE, 6 * PAGE));
	show("emptied");
	SHOW(at(0, 8, MAP_FIXED));
	show("all replaced");
	SHOW(mmap(base + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0);
	SHOW(mmap((void *)0xffff800000000000ul, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
			     MAP_FAILED ?
		     -1 :
		     0);

	// A file in the middle of anonymous memory.
	write_file("file", "in the middle");
	int fd = open("file", O_RDONLY);
	void *p = mmap(base + 3 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	CHECK(p == base + 3 * PAGE);
	printf("%s\n", base + 3 * PAGE);
	show("with a file");
	return 0;
}
