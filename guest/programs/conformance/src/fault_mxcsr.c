// Reserved bits of MXCSR are refused by LDMXCSR and FXRSTOR: a general protection fault, the register unchanged.
// engine: no (it takes any value for MXCSR; docs/engine.md)
#include "conformance.h"

#include <ucontext.h>

static volatile int faults;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	faults += si->si_code == SI_KERNEL;
	((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += 8;
}

int main(void)
{
	uint32_t bad = 0x80001f80, before, after;
	_Alignas(16) unsigned char image[512];
	on_siginfo(SIGSEGV, handler, 0);
	__asm__ volatile("stmxcsr %0" : "=m"(before));
	__asm__ volatile("ldmxcsr (%0)\n .byte 0x0f, 0x1f, 0x44, 0, 0\n" ::"a"(&bad)); // three bytes and a no-op of five
	__asm__ volatile("stmxcsr %0" : "=m"(after));
	printf("faults %d, unchanged %d\n", faults, before == after);
	__asm__ volatile("fxsave %0" : "=m"(image));
	memcpy(image + 24, &bad, 4);
	__asm__ volatile("fxrstor (%0)\n .byte 0x0f, 0x1f, 0x44, 0, 0\n" ::"a"(image) : "memory");
	__asm__ volatile("stmxcsr %0" : "=m"(after));
	printf("faults %d, unchanged %d\n", faults, before == after);
	return 0;
}
