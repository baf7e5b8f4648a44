// Aligned SSE moves and operands at unaligned addresses: a general protection fault without address; unaligned ones work.
// engine: no (its SSE operands need no alignment; docs/engine.md)
#include "conformance.h"

#include <ucontext.h>

static volatile int faults, skip;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	faults += si->si_code == SI_KERNEL && si->si_addr == NULL;
	((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += skip;
}

int main(void)
{
	_Alignas(16) unsigned char m[64] = {0};
	on_siginfo(SIGSEGV, handler, 0);
	skip = 3;
	__asm__ volatile("movaps (%%rax), %%xmm0" ::"a"(m + 8) : "xmm0", "memory");
	printf("movaps load: %d\n", faults);
	__asm__ volatile("movaps %%xmm0, (%%rax)" ::"a"(m + 4) : "memory");
	printf("movaps store: %d\n", faults);
	__asm__ volatile("addps (%%rax), %%xmm0" ::"a"(m + 8) : "xmm0", "memory");
	printf("addps: %d\n", faults);
	skip = 4;
	__asm__ volatile("paddd (%%rax), %%xmm0" ::"a"(m + 1) : "xmm0", "memory");
	printf("paddd: %d\n", faults);
	__asm__ volatile("movdqu (%%rax), %%xmm0\n movups %%xmm0, 1(%%rax)\n addss 3(%%rax), %%xmm0" ::"a"(m + 8) : "xmm0", "memory");
	__asm__ volatile("movaps (%%rax), %%xmm0\n paddd 16(%%rax), %%xmm0" ::"a"(m) : "xmm0", "memory");
	printf("aligned and unaligned moves: %d\n", faults);
	return 0;
}
