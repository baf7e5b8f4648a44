// SIGFPE, SIGILL, SIGTRAP and privileged instructions: code, address and resumption after the instruction.
#include "conformance.h"

#include <ucontext.h>

static volatile int sig_seen, code_seen, skip;
static void *volatile addr_seen, *volatile ip_seen;

static void handler(int sig, siginfo_t *si, void *uc)
{
	greg_t *ip = &((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
	sig_seen = sig;
	code_seen = si->si_code;
	addr_seen = si->si_addr;
	ip_seen = (void *)*ip;
	*ip += skip;
}

static void show(const char *what, const char *code, int want, void *ip)
{
	printf("%s: SIG%s, %s %d, ip right %d, address is ip %d\n", what, sigabbrev_np(sig_seen), code, code_seen == want,
	       ip_seen == ip, addr_seen == ip_seen);
	sig_seen = 0;
}

int main(void)
{
	static const int sigs[] = {SIGFPE, SIGILL, SIGTRAP, SIGSEGV, SIGBUS};
	for (int i = 0; i < LEN(sigs); i++)
		on_siginfo(sigs[i], handler, 0);
	void *ip;

	skip = 2; // div ecx is two bytes long
	int q = 1, r = 2;
	__asm__ volatile("lea 1f(%%rip), %2\n xor %%ecx, %%ecx\n 1: div %%ecx\n"
			 : "+a"(q), "+d"(r), "=&r"(ip)
			 :
			 : "rcx", "cc");
	show("divide by zero", "FPE_INTDIV", FPE_INTDIV, ip);
	printf("registers kept: %d %d\n", q, r);

	skip = 3; // idiv rcx
	int64_t a = 0, d = INT64_MIN;
	__asm__ volatile("lea 1f(%%rip), %2\n mov $1, %%ecx\n 1: idiv %%rcx\n"
			 : "+a"(a), "+d"(d), "=&r"(ip)
			 :
			 : "rcx", "cc");
	show("quotient too large", "FPE_INTDIV", FPE_INTDIV, ip);

	skip = 2;
	__asm__ volatile("lea 1f(%%rip), %0\n 1: ud2\n" : "=r"(ip));
	show("ud2", "ILL_ILLOPN", ILL_ILLOPN, ip);

	// The trap is reported after the breakpoint.
	skip = 0;
	__asm__ volatile("lea 1f(%%rip), %0\n int3\n 1:\n" : "=r"(ip));
	printf("int3: SIG%s, SI_KERNEL %d, ip behind it %d\n", sigabbrev_np(sig_seen), code_seen == SI_KERNEL, ip_seen == ip);
	sig_seen = 0;

	skip = 1;
	__asm__ volatile("lea 1f(%%rip), %0\n 1: hlt\n" : "=r"(ip));
	printf("hlt: SIG%s, SI_KERNEL %d, ip right %d, address %p\n", sigabbrev_np(sig_seen), code_seen == SI_KERNEL,
	       ip_seen == ip, addr_seen);
	skip = 1;
	__asm__ volatile("lea 1f(%%rip), %0\n 1: cli\n" : "=r"(ip));
	printf("cli: SIG%s, SI_KERNEL %d, ip right %d\n", sigabbrev_np(sig_seen), code_seen == SI_KERNEL, ip_seen == ip);
	skip = 2;
	__asm__ volatile("lea 1f(%%rip), %0\n 1: in $0x80, %%al\n" : "=r"(ip) : : "rax");
	printf("in: SIG%s, SI_KERNEL %d, ip right %d\n", sigabbrev_np(sig_seen), code_seen == SI_KERNEL, ip_seen == ip);
	skip = 3;
	__asm__ volatile("lea 1f(%%rip), %0\n 1: mov %%cr0, %%rax\n" : "=r"(ip) : : "rax");
	printf("mov cr0: SIG%s, SI_KERNEL %d, ip right %d\n", sigabbrev_np(sig_seen), code_seen == SI_KERNEL, ip_seen == ip);

	// Repeated many times.
	skip = 2;
	int faults = 0;
	for (int i = 0; i < 200; i++) {
		__asm__ volatile("ud2");
		faults += sig_seen == SIGILL;
		sig_seen = 0;
	}
	printf("faults %d\n", faults);
	volatile int one = 1, zero = 0;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		no_core();
		on_signal(SIGFPE, SIG_DFL, 0);
		_exit(one / zero);
	}
	printf("without a handler: %s\n", status_text(wait_for(pid)));
	return 0;
}
