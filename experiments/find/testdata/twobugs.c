// Two threads take two locks in opposite orders, and change a sum in two steps.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static volatile int sum;
static void *eat(void *order) {
	pthread_mutex_t *first = order ? &left : &right, *second = order ? &right : &left;
	int before = sum;
	sum = before + 1;
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
	return 0;
}
int main(void) {
	pthread_t threads[2];
	for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, eat, (void *)i);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	assert(sum == 2);
	return 0;
}
