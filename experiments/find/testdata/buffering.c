// Each thread stores its flag and reads the other's: both read 0 only where stores wait in buffers.
#include <assert.h>
#include <pthread.h>
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
	assert(seen[0] || seen[1]);
	return 0;
}
