// Floating-point control per thread: inherited at creation, separate afterwards; registers survive context switches.
// link: -lm
#include "conformance.h"

#include <fenv.h>
#include <math.h>

static pthread_barrier_t bar;
static volatile double one = 1, three = 3;
static volatile long double onel = 1, threel = 3;

static void *worker(void *arg)
{
	static const int mode[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
	int me = (intptr_t)arg;
	// The creator rounded upwards.
	CHECK(fegetround() == FE_UPWARD);
	CHECK(fesetround(mode[me]) == 0);
	pthread_barrier_wait(&bar);
	double first = one / three, neg = -one / three;
	long double firstl = onel / threel;
	for (int i = 0; i < 200; i++) {
		CHECK(one / three == first && -one / three == neg && onel / threel == firstl);
		CHECK(fegetround() == mode[me]);
		if (i % 8 == 0)
			sched_yield();
	}
	uint64_t bits;
	memcpy(&bits, &first, 8);
	return (void *)bits;
}

static void *summer(void *arg)
{
	// Sums kept in registers over many switches of threads.
	double s = 0, p = 1;
	long double l = 0;
	for (int i = 1; i < 20000; i++) {
		s += (intptr_t)arg / (double)i;
		p = p * 1.0001 + s * 1e-9;
		l += (long double)(intptr_t)arg / i;
		if (i % 1000 == 0)
			sched_yield();
	}
	uint64_t a, b;
	double d = (double)l + p;
	memcpy(&a, &s, 8);
	memcpy(&b, &d, 8);
	return (void *)(a ^ b);
}

int main(void)
{
	pthread_t t[4], s[6];
	OK(pthread_barrier_init(&bar, NULL, LEN(t)));
	CHECK(fesetround(FE_UPWARD) == 0);
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(worker, (void *)(intptr_t)i);
	CHECK(fesetround(FE_TONEAREST) == 0);
	for (int i = 0; i < LEN(t); i++)
		printf("%016lx\n", (unsigned long)finish(t[i]));
	for (int i = 0; i < LEN(s); i++)
		s[i] = start(summer, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < LEN(s); i++)
		printf("%016lx\n", (unsigned long)finish(s[i]));
	CHECK(fesetround(FE_DOWNWARD) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(fegetround() == FE_DOWNWARD ? 0 : 1);
	printf("child rounds alike: %s\n", status_text(wait_for(pid)));
	return 0;
}
