// The allocation calls: alignment, zeroing, overflow, huge requests, usable size, trim, thresholds.
#include "conformance.h"

#include <malloc.h>

static volatile size_t huge = SIZE_MAX;

static long got(void *p)
{
	long r = p == NULL ? -1 : 0;
	int e = errno;
	free(p);
	errno = e;
	return r;
}

int main(void)
{
	// Above the threshold a block is a mapping of its own.
	CHECK(mallopt(M_MMAP_THRESHOLD, 4096) == 1);
	void *m[10];
	for (int i = 0; i < LEN(m); i++) {
		CHECK((m[i] = malloc(300000)) != NULL);
		memset(m[i], i, 300000);
	}
	struct mallinfo2 info = mallinfo2();
	printf("mapped blocks %zu\n", info.hblks);
	for (int i = 0; i < LEN(m); i++)
		free(m[i]);
	info = mallinfo2();
	printf("mapped blocks %zu\n", info.hblks);

	void *p = NULL;
	for (size_t a = 8; a <= 65536; a *= 2) {
		CHECK(posix_memalign(&p, a, 100) == 0 && (uintptr_t)p % a == 0);
		memset(p, 1, 100);
		free(p);
		p = aligned_alloc(a, a * 2);
		CHECK(p != NULL && (uintptr_t)p % a == 0);
		free(p);
		p = memalign(a, 77);
		CHECK(p != NULL && (uintptr_t)p % a == 0);
		free(p);
	}
	SHOWE(posix_memalign(&p, 3, 100));
	SHOWE(posix_memalign(&p, 0, 100));
	p = valloc(10);
	CHECK((uintptr_t)p % 4096 == 0);
	free(p);

	SHOW(got(malloc(huge)));
	SHOW(got(malloc(huge / 2)));
	SHOW(got(calloc(huge / 2, 3)));
	SHOW(got(reallocarray(NULL, huge / 2, 3)));
	SHOW(got(malloc(0)));

	// Memory that was used and freed is zeroed by calloc.
	for (size_t n = 16; n < 1 << 20; n *= 4) {
		unsigned char *d = malloc(n);
		CHECK(d != NULL);
		memset(d, 0xff, n);
		free(d);
		d = calloc(n, 1);
		CHECK(d != NULL);
		for (size_t i = 0; i < n; i++)
			CHECK(d[i] == 0);
		CHECK(malloc_usable_size(d) >= n);
		free(d);
	}
	// Growing keeps the contents through every size class and mmap.
	unsigned char *g = NULL;
	for (size_t n = 1; n <= 4 << 20; n *= 2) {
		g = realloc(g, n);
		CHECK(g != NULL);
		for (size_t i = n / 2; i < n; i += 97)
			g[i] = (unsigned char)(i * 7);
		for (size_t i = n / 2; i < n; i += 97)
			CHECK(g[i] == (unsigned char)(i * 7));
	}
	g = realloc(g, 10);
	CHECK(g != NULL);
	free(g);
	malloc_trim(0);
	return 0;
}
