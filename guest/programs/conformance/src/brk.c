// brk and sbrk: grow, write, shrink, grow again to zeroes; the raw call returns the old break when refused.
#include "conformance.h"

int main(void)
{
	printf("stdio has its buffer, which may come from the heap\n");
	char *start = sbrk(0);
	CHECK(start != (void *)-1);
	char *p = sbrk(100000);
	printf("sbrk returns the old end: %d\n", p == start);
	CHECK(sbrk(0) == start + 100000);
	for (int i = 0; i < 100000; i++)
		CHECK(p[i] == 0);
	memset(p, 'x', 100000);
	SHOW(brk(start + 5000));
	CHECK(p[0] == 'x' && p[4999] == 'x');
	SHOW(brk(start + 50000));
	// Pages that were given back are zero again; the page that was kept has its bytes.
	char *next = (char *)(((uintptr_t)start + 5000 + 4095) & ~4095ul);
	for (char *q = next; q < start + 50000; q++)
		CHECK(*q == 0);
	printf("kept %c\n", p[4999]);

	uintptr_t end = syscall(SYS_brk, 0);
	CHECK(end == (uintptr_t)start + 50000);
	printf("too low: unchanged %d\n", (uintptr_t)syscall(SYS_brk, 4096) == end);
	printf("too high: unchanged %d\n", (uintptr_t)syscall(SYS_brk, 1ul << 62) == end);
	SHOW(brk((void *)4096));
	SHOW(sbrk(1l << 46) == (void *)-1 ? -1 : 0);

	// A mapping after the break limits its growth.
	char *wall = mmap((void *)(((uintptr_t)sbrk(0) + (1 << 20)) & ~4095ul), 4096, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(wall != MAP_FAILED);
	SHOW(brk(wall + 8192));
	SHOW(brk(wall - 65536));
	SHOW(brk(start));
	return 0;
}
