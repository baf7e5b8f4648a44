// Two threads take two locks in the same order.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static int meals;
static void *eat(void *arg) {
	pthread_mutex_lock(&left);
	pthread_mutex_lock(&right);
	meals++;
	pthread_mutex_unlock(&right);
	pthread_mutex_unlock(&left);
	return arg;
}
int main(void) {
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, eat, 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	assert(meals == 2);
	return 0;
}
