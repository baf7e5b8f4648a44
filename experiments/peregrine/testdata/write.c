// One thread prints a buffer that another changes: the kernel reads it.
#include <pthread.h>
#include <unistd.h>

static volatile char text[33] = "................................\n";

static void *change(void *arg)
{
	for (int i = 0; i < 32; i++) {
		text[i] = 'x';
		for (volatile int k = 0; k < 40; k++)
			;
	}
	return arg;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, change, 0);
	for (int i = 0; i < 6; i++)
		write(1, (char *)text, sizeof text);
	pthread_join(t, 0);
	return 0;
}
