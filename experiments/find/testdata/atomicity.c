// A sum is read under a lock, and written under the same lock taken again.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long balance;
static void *deposit(void *amount) {
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&mutex);
		long sum = balance + (long)amount;
		pthread_mutex_unlock(&mutex);
		pthread_mutex_lock(&mutex);
		balance = sum;
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}
int main(void) {
	pthread_t threads[3];
	for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, deposit, (void *)(i + 1));
	for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
	assert(balance == 30);
	return 0;
}
