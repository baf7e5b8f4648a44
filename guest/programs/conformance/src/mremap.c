// mremap: shrink, grow in place, grow by moving, to a fixed address, doubling a shared mapping, DONTUNMAP, refusals.
#include "conformance.h"

enum { PAGE = 4096 };

static char *map(int pages, int flags)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static void fill(char *p, int pages)
{
	for (int i = 0; i < pages; i++)
		p[i * PAGE] = 'a' + i;
}

static void show(const char *what, const char *p, int pages)
{
	printf("%s: ", what);
	for (int i = 0; i < pages; i++)
		printf("%c", p[i * PAGE] ? p[i * PAGE] : '0');
	printf("\n");
}

static bool mapped(void *p)
{
	unsigned char v;
	return mincore(p, PAGE, &v) == 0;
}

static long result(void *p)
{
	return p == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	// An address range of the program's own in which to grow and shrink.
	char *room = map(64, MAP_PRIVATE);
	CHECK(munmap(room + 8 * PAGE, 56 * PAGE) == 0);
	fill(room, 8);
	char *p = mremap(room, 8 * PAGE, 4 * PAGE, 0);
	CHECK(p == room && !mapped(room + 4 * PAGE));
	show("shrunk", p, 4);
	p = mremap(room, 4 * PAGE, 6 * PAGE, 0);
	CHECK(p == room);
	show("grown in place", p, 6);
	char *wall = mmap(room + 6 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(wall == room + 6 * PAGE);
	// The wall is memory of another kind, so that it is not merged with the mapping.
	CHECK(mprotect(wall, PAGE, PROT_READ) == 0);
	SHOW(result(mremap(room, 6 * PAGE, 7 * PAGE, 0)));
	p = mremap(room, 6 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && p != room && !mapped(room) && mapped(wall));
	show("moved", p, 20);

	char *to = map(32, MAP_PRIVATE);
	fill(to, 32);
	char *q = mremap(p, 20 * PAGE, 10 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + 2 * PAGE);
	CHECK(q == to + 2 * PAGE && !mapped(p));
	show("fixed", to, 16);
	// The middle of a mapping.
	q = mremap(to + 20 * PAGE, 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q != to + 20 * PAGE && !mapped(to + 20 * PAGE) && mapped(to + 22 * PAGE));
	show("from the middle", q, 5);
	SHOW(result(mremap(to + 18 * PAGE, 6 * PAGE, 8 * PAGE, MREMAP_MAYMOVE)));

	// An old size of zero doubles a shared mapping.
	char *s = map(2, MAP_SHARED);
	char *twin = mremap(s, 0, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(twin != MAP_FAILED && twin != s);
	strcpy(s, "twin");
	printf("doubled: %s\n", twin);

#ifdef MREMAP_DONTUNMAP
	char *d = map(2, MAP_PRIVATE);
	fill(d, 2);
	q = mremap(d, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	CHECK(q != MAP_FAILED && q != d);
	show("moved away", q, 2);
	show("left behind", d, 2);
#endif
	p = map(4, MAP_PRIVATE);
	SHOW(result(mremap(p + 1, PAGE, PAGE, 0)));
	SHOW(result(mremap(p, PAGE, 0, 0)));
	SHOW(result(mremap(p, PAGE, PAGE, 77)));
	SHOW(result(mremap(p, PAGE, PAGE, MREMAP_FIXED, to)));
	SHOW(result(mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE)));
	CHECK(munmap(p, 4 * PAGE) == 0);
	SHOW(result(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE)));
	return 0;
}
