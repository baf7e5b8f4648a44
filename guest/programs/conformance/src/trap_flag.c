// Single steps by the trap flag: SIGTRAP after every instruction, TRAP_TRACE, the handler switches it off again.
#include "conformance.h"

#include <ucontext.h>

static volatile int steps, wrong;
static volatile uintptr_t from, to;

static void handler(int sig, siginfo_t *si, void *uc)
{
	greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
	(void)sig;
	if ((uintptr_t)g[REG_RIP] > from && (uintptr_t)g[REG_RIP] <= to) {
		steps++;
		wrong += si->si_code != TRAP_TRACE;
	}
	if ((uintptr_t)g[REG_RIP] >= to)
		g[REG_EFL] &= ~0x100l;
}

int main(void)
{
	long n = 0;
	on_siginfo(SIGTRAP, handler, 0);
	__asm__ volatile("lea 1f(%%rip), %%rax\n mov %%rax, %1\n lea 2f(%%rip), %%rax\n mov %%rax, %2\n"
			 "pushf\n orq $0x100, (%%rsp)\n popf\n"
			 "1: nop\n inc %0\n add $5, %0\n mov $3, %%ecx\n 3: dec %%ecx\n jnz 3b\n nop\n 2: nop\n nop\n"
			 : "+r"(n), "=m"(from), "=m"(to)
			 :
			 : "rax", "rcx", "cc", "memory");
	printf("steps %d, wrong code %d, n %ld\n", steps, wrong, n);
	return 0;
}
