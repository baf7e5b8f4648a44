// 200 000 locks and unlocks, and as many atomic additions.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long n;

int main(void)
{
	for (int i = 0; i < 200000; i++) {
		pthread_mutex_lock(&m);
		__atomic_add_fetch(&n, 1, __ATOMIC_SEQ_CST);
		pthread_mutex_unlock(&m);
	}
	printf("%ld\n", n);
	return 0;
}
