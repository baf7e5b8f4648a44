// setjmp and longjmp: values, nesting, loops, deep unwinding, kept registers, many threads at once.
#include "conformance.h"

#include <setjmp.h>

static jmp_buf outer, inner;

static volatile int never;

__attribute__((noinline)) static void dive(int n, jmp_buf *to)
{
	volatile char room[200];
	room[n % 200] = (char)n;
	if (n == 0)
		longjmp(*to, 55);
	if (!never)
		dive(n - 1, to);
	room[0]++;
}

static _Thread_local jmp_buf mine;

static void *work(void *arg)
{
	volatile long sum = 0;
	for (volatile int i = 0; i < 300; i++) {
		int r = setjmp(mine);
		if (r == 0)
			dive(i % 10, &mine);
		sum += r;
	}
	(void)arg;
	return (void *)sum;
}

// callee_saved keeps values in registers that setjmp must save.
__attribute__((noinline)) static long callee_saved(long a)
{
	register long b = a * 3, c = a * 5, d = a * 7;
	jmp_buf env;
	volatile int round = 0;
	long va = a, vb = b, vc = c, vd = d;
	if (setjmp(env) < 3) {
		CHECK(va == a && vb == b && vc == c && vd == d);
		round++;
		longjmp(env, round);
	}
	return b + c + d + round;
}

int main(void)
{
	int r = setjmp(outer);
	printf("setjmp: %d\n", r);
	if (r == 0)
		longjmp(outer, 0);
	if (r == 1)
		longjmp(outer, -5);
	volatile int count = 0;
	if (setjmp(outer) == 0) {
		if (setjmp(inner) < 3) {
			count++;
			longjmp(inner, count);
		}
		longjmp(outer, 100);
	}
	printf("count %d\n", count);
	r = setjmp(outer);
	if (r == 0)
		dive(2000, &outer);
	printf("from the deep: %d\n", r);
	printf("registers: %ld\n", callee_saved(11));
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < LEN(t); i++)
		printf("thread: %ld\n", (long)finish(t[i]));
	return 0;
}
