// A thread returns without releasing a lock if another one was faster; the other does not take it afterwards.
#include <pthread.h>
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int first;
static void *visit(void *me) {
	if (pthread_mutex_trylock(&guard)) return 0;
	if (!first) first = (int)(long)me;
	if (first != 1) return 0;
	pthread_mutex_unlock(&guard);
	return 0;
}
int main(void) {
	pthread_t threads[2];
	for (long i = 1; i <= 2; i++) pthread_create(&threads[i - 1], 0, visit, (void *)i);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	return 0;
}
