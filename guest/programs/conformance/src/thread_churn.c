// Two thousand threads created and joined, some at once, some one by one, with results.
#include "conformance.h"

static void *identity(void *arg)
{
	return arg;
}

int main(void)
{
	long sum = 0;
	for (int i = 0; i < 800; i++)
		sum += (long)finish(start(identity, (void *)(intptr_t)i));
	for (int round = 0; round < 60; round++) {
		pthread_t t[20];
		for (int i = 0; i < LEN(t); i++)
			t[i] = start(identity, (void *)(intptr_t)(round * 20 + i));
		for (int i = LEN(t) - 1; i >= 0; i--)
			sum += (long)finish(t[i]);
	}
	printf("sum %ld\n", sum);
	return 0;
}
