// IFUNC symbols: resolved by CPUID at load time, called directly, by pointer and from threads.
#include "conformance.h"

#include <cpuid.h>

static int one(int x) { return x + 1; }
static int other(int x) { return x + 1 + 0 * getpid(); }

static int (*choose(void))(int)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return other;
	// SSE2 is part of x86-64: every processor chooses the same.
	return d & bit_SSE2 ? one : other;
}

int chosen(int x) __attribute__((ifunc("choose")));

static int (*volatile pointer)(int) = chosen;

static void *work(void *arg)
{
	long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += i % 2 ? chosen(i) : pointer(i);
	(void)arg;
	return (void *)sum;
}

int main(void)
{
	printf("%d %d\n", chosen(41), pointer(42));
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < LEN(t); i++)
		printf("%ld\n", (long)finish(t[i]));
	// The C library's IFUNC symbols: each length and alignment of copying, filling, comparing.
	static unsigned char a[5000], b[5000];
	for (int n = 0; n < 600; n += 1 + n / 20)
		for (int shift = 0; shift < 33; shift += 8) {
			for (int i = 0; i < 700; i++)
				a[i] = i * 7 + n, b[i] = 0xee;
			memcpy(b + shift + 1, a + shift, n);
			CHECK(memcmp(b + shift + 1, a + shift, n) == 0 && b[shift + 1 + n] == 0xee && b[shift] == 0xee);
			memmove(b + shift, b + shift + 1, n);
			CHECK(memcmp(b + shift, a + shift, n) == 0);
			memset(b + shift, 0, n + 1);
			CHECK(strlen((char *)b + shift) == 0 && (n == 0 || memchr(b + shift, 0xee, 700 - shift) == b + shift + n + 1));
		}
	printf("strings of all lengths\n");
	return 0;
}
