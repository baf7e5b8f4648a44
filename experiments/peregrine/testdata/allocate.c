// Threads compute for long, allocate and free blocks of each other, and end: through
// their routines' ends and through pthread_exit.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 3, BLOCKS = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned *blocks[THREADS * ROUNDS * BLOCKS];
static int filled;

static unsigned compute(unsigned x, int n) {
	for (int i = 0; i < n; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

// swap puts a block in, and takes another one out.
static unsigned *swap(unsigned *block) {
	pthread_mutex_lock(&mutex);
	blocks[filled++] = block;
	unsigned *other = filled > THREADS ? blocks[--filled - THREADS] : NULL;
	if (other)
		blocks[filled - THREADS] = blocks[filled];
	pthread_mutex_unlock(&mutex);
	return other;
}

static void *work(void *arg) {
	unsigned long n = (unsigned long)arg, sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned x = compute(n, 20000 + 1000 * n);
		for (int b = 0; b < BLOCKS; b++) {
			unsigned *block = malloc(2000 + 100 * b);
			*block = x;
			unsigned *other = swap(block);
			if (other) {
				compute(x, 5000);
				free(other);
			}
		}
		sum += x;
	}
	if (n % 2)
		pthread_exit((void *)sum);
	return (void *)sum;
}

int main(void) {
	pthread_t threads[THREADS];
	unsigned long sum = 0;
	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		sum += (unsigned long)result;
	}
	for (int i = 0; i < filled; i++)
		free(blocks[i]);
	printf("%lu, %d left\n", sum, filled);
	return 0;
}
