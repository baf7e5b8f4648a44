// malloc, realloc and free from eight threads, blocks freed by other threads, contents always intact.
#include "conformance.h"

enum { THREADS = 8, SLOTS = 64, ROUNDS = 600 };

struct block {
	size_t size;
	unsigned char fill;
	unsigned char data[];
};

static _Atomic(struct block *) slot[SLOTS];
static atomic_long made, freed;

static void check_and_free(struct block *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->size; i += 1 + b->size / 16)
		CHECK(b->data[i] == b->fill);
	free(b);
	freed++;
}

static void *worker(void *arg)
{
	uint32_t x = 12345 + (uint32_t)(uintptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		x = x * 1664525 + 1013904223;
		size_t n = (x >> 8) % 8 == 0 ? (x >> 12) % 200000 : (x >> 12) % 600;
		struct block *b = malloc(sizeof *b + n);
		CHECK(b != NULL && ((uintptr_t)b & 15) == 0);
		b->size = n;
		b->fill = x >> 24;
		memset(b->data, b->fill, n);
		if (i % 5 == 0) {
			size_t m = n * 2 + 1;
			b = realloc(b, sizeof *b + m);
			CHECK(b != NULL);
			memset(b->data + n, b->fill, m - n);
			b->size = m;
		}
		made++;
		check_and_free(atomic_exchange(&slot[(x >> 16) % SLOTS], b));
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
	for (int i = 0; i < SLOTS; i++)
		check_and_free(atomic_exchange(&slot[i], NULL));
	printf("made %ld, freed %ld\n", made, freed);
	return 0;
}
