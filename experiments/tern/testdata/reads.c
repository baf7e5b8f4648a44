// Reads a file that no argument names, and takes a lock as often as its first byte says.
#include <pthread.h>
#include <stdio.h>

int main(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	FILE *f = fopen("data", "r");
	int n = f ? fgetc(f) - '0' : 0;

	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
	printf("%d\n", n);
	return 0;
}
