// Asynchronous signals in a tight loop of arithmetic: no general register, flag or stack byte is ever lost.
#include "conformance.h"

#include <sys/time.h>

static volatile sig_atomic_t hits;

static void handler(int sig)
{
	volatile char scratch[500];
	(void)sig;
	memset((char *)scratch, hits, sizeof scratch);
	hits++;
}

// spin runs a checksum over all general registers; the same n gives the same sum.
__attribute__((noinline)) static uint64_t spin(uint64_t n)
{
	uint64_t sum = 0;
	__asm__ volatile(
		"sub $256, %%rsp\n push %%rbp\n mov $1, %%rbp\n mov $2, %%rbx\n mov $3, %%rsi\n mov $4, %%rdi\n mov $5, %%r8\n mov $6, %%r9\n"
		"mov $7, %%r10\n mov $8, %%r11\n mov $9, %%r12\n mov $10, %%r13\n mov $11, %%r14\n mov $12, %%r15\n"
		"1: add %%r15, %%rbp\n adc %%rbp, %%rbx\n rol $3, %%rbx\n xor %%rbx, %%rsi\n add %%rsi, %%rdi\n adc $0, %%r8\n"
		"add %%rdi, %%r9\n ror $7, %%r9\n sub %%r9, %%r10\n sbb %%r10, %%r11\n xor %%r11, %%r12\n imul $33, %%r12, %%r13\n"
		"add %%r13, %%r14\n push %%r14\n pop %%r15\n rcl $1, %%r15\n mov %%r15, -64(%%rsp)\n add -64(%%rsp), %%rax\n"
		"dec %%rcx\n jnz 1b\n"
		"add %%rbp, %%rax\n add %%rbx, %%rax\n add %%rsi, %%rax\n add %%rdi, %%rax\n add %%r8, %%rax\n add %%r9, %%rax\n"
		"add %%r10, %%rax\n add %%r11, %%rax\n add %%r12, %%rax\n add %%r13, %%rax\n add %%r14, %%rax\n pop %%rbp\n"
		"lea 256(%%rsp), %%rsp\n"
		: "+a"(sum), "+c"(n)
		:
		: "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	return sum;
}

static void *other(void *arg)
{
	uint64_t want = spin(50000);
	while (hits < 15)
		CHECK(spin(50000) == want);
	return arg;
}

int main(void)
{
	uint64_t want = spin(30000);
	on_signal(SIGALRM, handler, SA_RESTART);
	struct itimerval it = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
	pthread_t t = start(other, NULL);
	CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
	while (hits < 15)
		CHECK(spin(30000) == want);
	CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
	finish(t);
	printf("%016llx\n", (unsigned long long)want);
	return 0;
}
