// Six threads map, fill, protect, move and unmap at the same time; no thread's memory overlaps another's.
#include "conformance.h"

enum { THREADS = 6, ROUNDS = 40, PAGE = 4096 };

static void *worker(void *arg)
{
	unsigned char me = (uintptr_t)arg + 1;
	unsigned char *keep[4] = {0};
	size_t size[4] = {0};
	for (int i = 0; i < ROUNDS; i++) {
		int k = i % 4;
		if (keep[k]) {
			for (size_t j = 0; j < size[k]; j += 512)
				CHECK(keep[k][j] == me);
			CHECK(munmap(keep[k], size[k]) == 0);
		}
		size_t n = (1 + (i * 7 + me) % 9) * PAGE;
		unsigned char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED && p[0] == 0 && p[n - 1] == 0);
		memset(p, me, n);
		if (i % 3 == 0) {
			p = mremap(p, n, 2 * n, MREMAP_MAYMOVE);
			CHECK(p != MAP_FAILED);
			CHECK(p[n] == 0 && p[2 * n - 1] == 0);
			memset(p + n, me, n);
			n *= 2;
		}
		if (i % 5 == 0)
			CHECK(mprotect(p, n, PROT_READ) == 0);
		keep[k] = p;
		size[k] = n;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	printf("done\n");
	return 0;
}
