// Floating-point state over signals: registers, rounding modes and flags survive handlers, handlers start with defaults.
// link: -lm
#include "conformance.h"

#include <fenv.h>
#include <math.h>
#include <sys/time.h>

static volatile sig_atomic_t hits, dirty_start;

static void handler(int sig)
{
	(void)sig;
	uint32_t csr;
	uint16_t cw;
	__asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(csr), "=m"(cw));
	if ((csr & 0xffc0) != 0x1f80 || cw != 0x37f)
		dirty_start++;
	// Change all of the state.
	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n movdqa %%xmm0, %%xmm1\n movdqa %%xmm0, %%xmm2\n movdqa %%xmm0, %%xmm7\n"
			 "movdqa %%xmm0, %%xmm8\n movdqa %%xmm0, %%xmm15\n fldpi\n fldpi\n fldl2e\n fninit\n fld1\n"
			 :
			 :
			 : "xmm0", "xmm1", "xmm2", "xmm7", "xmm8", "xmm15");
	__asm__ volatile("fninit");
	fesetround(FE_TOWARDZERO);
	feraiseexcept(FE_OVERFLOW);
	hits++;
}

// compute does sums in SSE and x87 registers; a lost register changes the result.
__attribute__((noinline)) static double compute(int n)
{
	double s = 0;
	long double l = 0;
	for (int i = 1; i <= n; i++) {
		s += 1.0 / i * (i % 2 ? 1 : -1);
		l += 1.0L / ((long double)i * i);
	}
	return s + (double)l;
}

int main(void)
{
	on_signal(SIGALRM, handler, SA_RESTART);
	on_signal(SIGUSR1, handler, 0);
	double want = compute(20000);
	struct itimerval it = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
	CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
	int rounds = 0;
	while (hits < 10 || rounds < 10) {
		CHECK(compute(20000) == want);
		rounds++;
	}
	CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
	printf("sums unchanged\n");

	CHECK(fesetround(FE_UPWARD) == 0);
	feclearexcept(FE_ALL_EXCEPT);
	feraiseexcept(FE_DIVBYZERO);
	raise(SIGUSR1);
	printf("rounding up %d, divbyzero %d, overflow %d\n", fegetround() == FE_UPWARD, fetestexcept(FE_DIVBYZERO) != 0,
	       fetestexcept(FE_OVERFLOW) != 0);
	printf("rint(2.1) = %.1f, rintl(2.1) = %.1Lf\n", rint(2.1), rintl(2.1L));

	// Values in registers across a synchronous signal.
	double a, b;
	unsigned long tid = gettid(), pid = getpid();
	uint16_t top;
	__asm__ volatile("fninit\n fldpi\n fld1\n"
			 "mov $0x400921fb54442d18, %%rax\n movq %%rax, %%xmm7\n movq %%rax, %%xmm15\n"
			 "mov %4, %%eax\n mov %5, %%rdi\n mov %6, %%rsi\n mov %7, %%edx\n syscall\n"
			 "fnstsw %2\n faddp\n fstpl %0\n movq %%xmm7, %1\n addsd %%xmm15, %%xmm7\n movsd %%xmm7, %3\n"
			 : "=m"(a), "=r"(b), "=m"(top), "=m"(want)
			 : "i"(SYS_tgkill), "r"(pid), "r"(tid), "i"(SIGUSR1)
			 : "rax", "rcx", "r11", "rdi", "rsi", "rdx", "xmm7", "xmm15", "memory", "cc");
	printf("x87 stack depth %d, sum %.4f, xmm %.4f %.4f\n", 8 - (top >> 11 & 7), a, b, want);
	printf("handlers started clean: %d\n", dirty_start == 0);
	return 0;
}
