// Level x86-64-v3: the registers of AVX over switches of threads, fork, execve, longjmp and lazy binding, and by XSAVE and XRSTOR.
// cpu: x86-64-v3
#include "avx.h"

#include <setjmp.h>

enum { THREADS = 6, ROUNDS = 300 };

static void *keeps(void *arg)
{
	struct ymm r[16], want[16];
	for (int n = 0; n < ROUNDS; n++) {
		fill(r, (uintptr_t)arg * ROUNDS + n);
		memcpy(want, r, sizeof r);
		CHECK(set_call(r, SYS_sched_yield, 0, 0, 0) == 0);
		CHECK(memcmp(r, want, sizeof r) == 0);
		// Without calls, for switches by time.
		__asm__ volatile(ALL(SET) : : "r"(r) : CLOBBERS);
		for (int i = 0; i < 200; i++)
			__asm__ volatile("vpaddq %%ymm15, %%ymm14, %%ymm15\n vpsubq %%ymm14, %%ymm15, %%ymm15" : : : "xmm15");
		__asm__ volatile(ALL(GET) : : "r"(r) : CLOBBERS);
		CHECK(memcmp(r, want, sizeof r) == 0);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(keeps, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	printf("threads\n");
}

static void forks(void)
{
	struct ymm r[16], want[16];
	fill(r, 7);
	memcpy(want, r, sizeof r);
	long pid = set_call(r, SYS_fork, 0, 0, 0);
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(memcmp(r, want, sizeof r) ? 1 : 2);
	printf("parent %d, child %s\n", memcmp(r, want, sizeof r) == 0, status_text(wait_for(pid)));
}

// A new program begins with zeros, apart from what its own start does.
static void first_registers(void)
{
	struct ymm r[16];
	__asm__ volatile(ALL(GET) : : "r"(r) : "memory");
	uint64_t any = 0;
	for (int i = 8; i < 16; i++)
		any |= r[i].high[0] | r[i].high[1];
	printf("new program: %d\n", any == 0);
}

static void executes(const char *name)
{
	struct ymm r[16];
	char *args[] = {(char *)name, "again", NULL};
	pid_t pid = fork();
	if (pid == 0) {
		fill(r, 9);
		set_call(r, SYS_execve, (long)"/proc/self/exe", (long)args, (long)environ);
		_exit(1);
	}
	printf("%s\n", status_text(wait_for(pid)));
}

static jmp_buf back;

__attribute__((noinline)) static void jumps(double *sum)
{
	volatile int n = 0;
	double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	setjmp(back);
	for (int i = 0; i < 8; i++)
		*sum += x[i] * (n + 1);
	if (++n < 10)
		longjmp(back, 1);
}

static void saves(void)
{
	static char image[4096] __attribute__((aligned(64)));
	struct ymm r[16], want[16];
	unsigned low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	printf("state %u\n", low & 7);
	fill(r, 11);
	memcpy(want, r, sizeof r);
	__asm__ volatile(ALL(SET) "xsave %3\n vzeroall\n" : : "r"(r), "a"(7), "d"(0), "m"(image) : CLOBBERS);
	__asm__ volatile(ALL(GET) : : "r"(r) : CLOBBERS);
	CHECK(r[5].low[0] == 0 && r[5].high[0] == 0);
	printf("header %lu, upper halves at their place %d\n", *(unsigned long *)(image + 512) & 6,
	       memcmp(image + high_at() + 16 * 4, want[4].high, 16) == 0);
	__asm__ volatile("xrstor %3\n" ALL(GET) : : "r"(r), "a"(6), "d"(0), "m"(image) : CLOBBERS);
	printf("restored %d\n", memcmp(r, want, sizeof r) == 0);
	// Without the component its registers are zero.
	*(unsigned long *)(image + 512) &= ~4ul;
	__asm__ volatile("xrstor %3\n" ALL(GET) : : "r"(r), "a"(6), "d"(0), "m"(image) : CLOBBERS);
	printf("without AVX: %d %d\n", memcmp(r[3].low, want[3].low, 16) == 0, r[3].high[0] == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		first_registers();
		return 3;
	}
	threads();
	forks();
	executes(argv[0]);
	double sum = 0;
	jumps(&sum);
	printf("jumps %g\n", sum);
	saves();
	__builtin_cpu_init();
	printf("features %d %d %d %d %d %d\n", !!__builtin_cpu_supports("avx"), !!__builtin_cpu_supports("avx2"), !!__builtin_cpu_supports("bmi"),
	       !!__builtin_cpu_supports("bmi2"), !!__builtin_cpu_supports("fma"), !!__builtin_cpu_supports("x86-64-v3"));
	return 0;
}
