// Two threads that work alone for 10,000 instructions each, with 20 critical sections.
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *work(void *arg) {
	for (int i = 0; i < 10; i++) {
		for (volatile int n = 0; n < 160; n++) {}
		pthread_mutex_lock(&mutex);
		sum++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}
int main(void) {
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	return sum != 20;
}
