// An increment that is one instruction without a LOCK prefix. With PRINT the program prints the sum, and does not fail.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#ifndef ROUNDS
#define ROUNDS 3
#endif
static int counter;
static void *count(void *arg) {
	for (int i = 0; i < ROUNDS; i++) __asm__ volatile("addl $1, %0" : "+m"(counter));
	return arg;
}
int main(void) {
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, count, 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
#ifdef PRINT
	printf("%d\n", counter);
#else
	assert(counter == 2 * ROUNDS);
#endif
	return 0;
}
