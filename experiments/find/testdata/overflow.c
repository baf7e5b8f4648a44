// Two threads append to a block that has room for one more byte.
#include <pthread.h>
#include <stdlib.h>
static char *block;
static volatile int count = 15;
static void *append(void *unused) {
	if (count < 16) block[count++] = 1;
	return unused;
}
int main(void) {
	pthread_t threads[2];
	block = malloc(16);
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, append, 0);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	return 0;
}
