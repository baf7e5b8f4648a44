// Store buffering that fails no assertion: what the threads have read is printed.
#include <pthread.h>
#include <stdio.h>
static volatile int flags[2], seen[2];
static void *enter(void *which) {
	long me = (long)which;
	flags[me] = 1;
	seen[me] = flags[1 - me];
	return 0;
}
int main(void) {
	pthread_t threads[2];
	for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, enter, (void *)i);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
	printf("%d%d\n", seen[0], seen[1]);
	return 0;
}
