// Each thread stores its flag and reads the other's: both read 0 only where stores wait in buffers. With PRINT the
// program prints what they have read, and does not fail.
#include <assert.h>
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
#ifdef PRINT
	printf("%d%d\n", seen[0], seen[1]);
#else
	assert(seen[0] || seen[1]);
#endif
	return 0;
}
