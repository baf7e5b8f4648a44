// Atomic operations, in numbers that no interleaving changes, between mutex
// operations, whose own are no operations.
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, TIMES = 50 };

long added, exchanged, compared, wide[2] __attribute__((aligned(16)));
static char byte;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *number)
{
	for (long i = 0; i < TIMES; i++) {
		long expected = -1;
		__atomic_fetch_add(&added, 1, __ATOMIC_SEQ_CST);
		__atomic_exchange_n(&exchanged, i, __ATOMIC_SEQ_CST);
		__atomic_compare_exchange_n(&compared, &expected, i, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		__atomic_fetch_or(&byte, 1, __ATOMIC_SEQ_CST);
		__asm__ volatile("mfence" ::: "memory");
		pthread_mutex_lock(&mutex);
		wide[0]++;
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%ld %ld\n", added, wide[0]);
	return 0;
}
