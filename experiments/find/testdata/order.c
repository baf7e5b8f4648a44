// Threads print in the order in which they come, each under a lock.
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *greet(void *which) {
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&mutex);
		printf("%ld\n", (long)which);
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}
int main(void) {
	pthread_t threads[3];
	for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, greet, (void *)i);
	for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
	return 0;
}
