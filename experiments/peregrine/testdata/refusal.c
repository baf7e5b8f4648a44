// Threads that race, lock and read a number from a file.
#include <pthread.h>
#include <stdio.h>

static volatile long racing, locked;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *rounds)
{
	for (long i = 0; i < 300 * *(long *)rounds; i++)
		racing = racing * 3 + 1;
	pthread_mutex_lock(&mutex);
	locked += racing;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	long rounds = 1;
	FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
	if (file == NULL || fscanf(file, "%ld", &rounds) != 1)
		return 1;
	fclose(file);
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, &rounds);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld\n", racing, locked);
	return 0;
}
