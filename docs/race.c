// Four threads add to one counter without a lock, so that updates get lost: how
// many depends on the interleaving.
#include <pthread.h>
#include <stdio.h>

static volatile int counter;

static __attribute__((noinline)) int successor(int n) { return n + 1; }

static void *add(void *arg) {
	for (int i = 0; i < 100000; i++) counter = successor(counter);
	return arg;
}

int main(void) {
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, add, 0);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%d of 400000\n", counter);
	return 0;
}
