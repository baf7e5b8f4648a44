// An increment that is one instruction without a LOCK prefix.
#include <assert.h>
#include <pthread.h>
static int counter;
static void *count(void *arg) {
	for (int i = 0; i < 3; i++) __asm__ volatile("addl $1, %0" : "+m"(counter));
	return arg;
}
int main(void) {
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, count, 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	assert(counter == 6);
	return 0;
}
