// Handlers that change the interrupted context: general and SSE registers, flags, instruction and stack pointer.
#include "conformance.h"

#include <ucontext.h>

static volatile int mode;

__attribute__((noinline)) static long landing(long x)
{
	return x * 2;
}

static void handler(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;
	greg_t *g = uc->uc_mcontext.gregs;
	(void)sig;
	(void)si;
	switch (mode) {
	case 0: // give the load its result
		g[REG_RAX] = 4711;
		g[REG_RIP] += 3;
		break;
	case 1: // give it a good pointer
		g[REG_RDI] = g[REG_RSI];
		break;
	case 2: // add one to every register
		g[REG_RBX]++;
		g[REG_RCX]++;
		g[REG_RDX]++;
		for (int i = REG_R8; i <= REG_R15; i++)
			g[i]++;
		g[REG_RIP] += 2;
		break;
	case 3: // flags: carry set, direction cleared
		g[REG_EFL] = (g[REG_EFL] | 1) & ~0x400l;
		g[REG_RIP] += 2;
		break;
	case 4: // an SSE register and the rounding mode
		uc->uc_mcontext.fpregs->_xmm[3].element[0] = 0x40490fdb; // 3.14159274f
		uc->uc_mcontext.fpregs->mxcsr |= 0x6000;
		g[REG_RIP] += 2;
		break;
	case 5: // call another function
		g[REG_RSP] -= 8;
		*(long *)g[REG_RSP] = g[REG_RIP] + 2;
		g[REG_RIP] = (greg_t)landing;
		break;
	}
}

int main(void)
{
	on_siginfo(SIGSEGV, handler, 0);
	on_siginfo(SIGILL, handler, 0);
	long v, good = 1234;
	mode = 0;
	__asm__ volatile("mov $16, %%edi\n .byte 0x48, 0x8b, 0x07\n" : "=a"(v) : : "rdi"); // mov rax, [rdi]
	printf("answered load: %ld\n", v);
	mode = 1;
	__asm__ volatile("mov $16, %%edi\n mov (%%rdi), %0\n" : "=a"(v) : "S"(&good) : "rdi", "memory");
	printf("repaired pointer: %ld\n", v);
	mode = 2;
	long b = 10, c = 20, d = 30, r8s;
	__asm__ volatile("mov $100, %%r8\n mov $200, %%r9\n mov $300, %%r10\n mov $400, %%r11\n"
			 "mov $500, %%r12\n mov $600, %%r13\n mov $700, %%r14\n mov $800, %%r15\n"
			 "ud2\n"
			 "lea (%%r8,%%r9), %0\n add %%r10, %0\n add %%r11, %0\n add %%r12, %0\n"
			 "add %%r13, %0\n add %%r14, %0\n add %%r15, %0\n"
			 : "=&a"(r8s), "+b"(b), "+c"(c), "+d"(d)
			 :
			 : "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc");
	printf("registers: %ld %ld %ld, sum %ld\n", b, c, d, r8s);
	mode = 3;
	long carry, direction;
	__asm__ volatile("clc\n std\n ud2\n setc %b0\n movzbl %b0, %k0\n pushf\n pop %1\n cld\n"
			 : "=&q"(carry), "=r"(direction)
			 :
			 : "cc");
	printf("carry %ld, direction %ld\n", carry, direction >> 10 & 1);
	mode = 4;
	float f;
	int rounded;
	uint32_t old, csr;
	__asm__ volatile("stmxcsr %3\n xorps %%xmm3, %%xmm3\n ud2\n movss %%xmm3, %0\n"
			 "cvtss2si %%xmm3, %1\n stmxcsr %2\n ldmxcsr %3\n"
			 : "=m"(f), "=r"(rounded), "=m"(csr), "=m"(old)
			 :
			 : "xmm3");
	printf("xmm3 %.6f, rounding field %d, converted %d\n", f, (int)(csr >> 13 & 3), rounded);
	mode = 5;
	long x = 21;
	__asm__ volatile("mov %%rsp, %%rbx\n sub $128, %%rsp\n and $-16, %%rsp\n mov %1, %%rdi\n ud2\n mov %%rbx, %%rsp\n"
			 : "=a"(v)
			 : "r"(x)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
	printf("called: %ld\n", v);
	return 0;
}
