// Anonymous mappings: zero-filled, private, of odd lengths, huge and sparse, hinted; refused arguments.
#include "conformance.h"

static void *map(size_t n, int prot, int flags)
{
	void *p = mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK(((uintptr_t)p & 4095) == 0);
	return p;
}

static long result(void *p)
{
	return p == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	unsigned char *p = map(10000, PROT_READ | PROT_WRITE, 0);
	for (int i = 0; i < 12288; i++)
		CHECK(p[i] == 0); // the whole last page is mapped
	memset(p, 0xaa, 12288);
	SHOW(munmap(p, 10000));

	// 64 GB of address space, a few pages of it used.
	size_t huge = 64ul << 30;
	p = map(huge, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	for (size_t at = 0; at < huge; at += huge / 16) {
		CHECK(p[at] == 0);
		p[at] = at >> 32;
		p[at + 4095] = 7;
	}
	unsigned sum = 0;
	for (size_t at = 0; at < huge; at += huge / 16)
		sum += p[at] + p[at + 4095];
	printf("sum %u\n", sum);
	SHOW(munmap(p, huge));

	// Reserved without access, then opened piece by piece.
	p = map(huge, PROT_NONE, MAP_NORESERVE);
	for (int i = 0; i < 8; i++) {
		size_t at = (size_t)i << 32;
		CHECK(mprotect(p + at, 8192, PROT_READ | PROT_WRITE) == 0);
		memset(p + at, i, 8192);
	}
	for (int i = 0; i < 8; i++)
		CHECK(p[((size_t)i << 32) + 8191] == i);
	SHOW(munmap(p, huge));

	// A hint is used if its range is free, and ignored otherwise; both are rounded.
	p = map(65536, PROT_READ, 0);
	CHECK(munmap(p, 65536) == 0);
	void *q = mmap(p + 4096 + 7, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("free hint taken: %d\n", q == p + 4096);
	void *r = mmap(q, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("used hint taken: %d\n", r == q);

	SHOW(result(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
	SHOW(result(mmap(NULL, 4096, PROT_READ, MAP_ANONYMOUS, -1, 0)));
	SHOW(result(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0)));
	SHOW(result(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 100)));
	SHOW(result(mmap(NULL, 1ul << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
	SHOW(result(mmap(NULL, -4096ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
	SHOW(result(mmap(NULL, -1ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
	SHOW(munmap((char *)q + 1, 4096));
	SHOW(munmap(q, 0));
	SHOW(munmap((void *)0xffff800000000000ul, 4096));
	SHOW(munmap(q, 4096));
	SHOW(munmap(q, 4096));
	return 0;
}
