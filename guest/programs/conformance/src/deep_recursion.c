// Deep recursion: 7 MB of the main thread's growing stack and most of a large thread stack.
#include "conformance.h"

static unsigned long dive(int depth)
{
	volatile char frame[1000];
	frame[0] = (char)depth;
	frame[999] = (char)(depth >> 3);
	unsigned long below = depth == 0 ? 1 : dive(depth - 1);
	return below * 31 + (unsigned char)frame[0] + (unsigned char)frame[999];
}

static void *in_thread(void *arg)
{
	return (void *)dive((intptr_t)arg);
}

int main(void)
{
	struct rlimit r;
	CHECK(getrlimit(RLIMIT_STACK, &r) == 0);
	int depth = r.rlim_cur == RLIM_INFINITY || r.rlim_cur >= 8 << 20 ? 6000 : 1000;
	CHECK(depth == 6000);
	printf("main %lx\n", dive(depth));
	pthread_attr_t a;
	pthread_t t[3];
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstacksize(&a, 4 << 20));
	for (int i = 0; i < LEN(t); i++)
		OK(pthread_create(&t[i], &a, in_thread, (void *)3000));
	for (int i = 0; i < LEN(t); i++)
		printf("thread %lx\n", (unsigned long)finish(t[i]));
	return 0;
}
