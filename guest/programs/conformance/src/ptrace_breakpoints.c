// ptrace: hardware breakpoints and watchpoints, set through the debug registers.
// breakpoints: yes
#include "tracer.h"

#include <stddef.h>

static volatile long watched[4];

__attribute__((noinline)) static long square(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * n;
}

static long debug_register(pid_t pid, int n)
{
	long word = 0;
	CHECK(trace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[n]), &word) == 0);
	return word;
}

static long set_debug_register(pid_t pid, int n, unsigned long word)
{
	return trace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[n]), DATA(word));
}

static int accesses(void)
{
	long sum = watched[0];
	watched[1] = 1;
	watched[0] = 2;
	watched[0] = 2;
	((volatile char *)watched)[6] = 3;
	sum += watched[2];
	watched[2] += 5;
	sum += square(2);
	return sum & 0x3f;
}

// DR7 for slot n: enabled, kind (0 execute, 1 write, 3 both), length code.
#define CONTROL(n, kind, length) (1UL << 2 * (n) | (unsigned long)((length) << 2 | (kind)) << (16 + 4 * (n)))

static void hardware(void)
{
	printf("-- hardware breakpoints\n");
	pid_t pid = traced(accesses);
	for (int i = 0; i < 8; i++)
		printf("%lx ", debug_register(pid, i));
	printf("\n");
	SHOW(set_debug_register(pid, 0, (unsigned long)watched));
	SHOW(set_debug_register(pid, 1, (unsigned long)&watched[2]));
	SHOW(set_debug_register(pid, 2, (unsigned long)square));
	SHOW(set_debug_register(pid, 3, 0xffff800000000000));
	SHOW(set_debug_register(pid, 3, 0x7ffffffff000));
	SHOW(set_debug_register(pid, 4, 0));
	SHOW(set_debug_register(pid, 5, 0));
	SHOW(set_debug_register(pid, 3, 3));
	SHOW(set_debug_register(pid, 7, CONTROL(3, 1, 1))); // not aligned
	SHOW(set_debug_register(pid, 7, CONTROL(3, 2, 0))); // a port
	SHOW(set_debug_register(pid, 7, CONTROL(3, 0, 3))); // four bytes of code
	printf("%lx\n", debug_register(pid, 7));
	SHOW(set_debug_register(pid, 7, CONTROL(0, 1, 2) | CONTROL(1, 3, 3) | CONTROL(2, 0, 0)));
	printf("%lx\n", debug_register(pid, 7));
	int status;
	while (WIFSTOPPED(status = let_go(PTRACE_CONT, pid, 0))) {
		siginfo_t info;
		CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
		struct user_regs_struct r = registers(pid);
		printf("code %d at the PC %d, function %d, status %lx, values %ld %ld %ld\n", info.si_code, info.si_addr == (void *)r.rip,
		       r.rip == (unsigned long)square, debug_register(pid, 6), ptrace(PTRACE_PEEKDATA, pid, &watched[0], 0),
		       ptrace(PTRACE_PEEKDATA, pid, &watched[1], 0), ptrace(PTRACE_PEEKDATA, pid, &watched[2], 0));
		CHECK(r.rip != (unsigned long)square || set_debug_register(pid, 6, 0) == 0);
	}
	// Children do not inherit them.
	pid = traced(accesses);
	printf("%lx\n", debug_register(pid, 7));
	CHECK(kill(pid, SIGKILL) == 0);
	await(pid);
}

static void stepped_hardware(void)
{
	printf("-- steps and a hardware breakpoint\n");
	pid_t pid = traced(accesses);
	CHECK(set_debug_register(pid, 0, (unsigned long)&watched[1]) == 0);
	CHECK(set_debug_register(pid, 7, CONTROL(0, 1, 2)) == 0);
	int status, n = 0, both = 0;
	siginfo_t info;
	do {
		CHECK(trace(PTRACE_SINGLESTEP, pid, 0, NULL) == 0 && waitpid(pid, &status, 0) == pid);
		if (!WIFSTOPPED(status))
			break;
		CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
		n++;
		if (debug_register(pid, 6) & 1) {
			printf("code %d status %lx\n", info.si_code, debug_register(pid, 6));
			both++;
		}
	} while (both == 0);
	let_go(PTRACE_CONT, pid, 0);
}

int main(void)
{
	hardware();
	stepped_hardware();
	return 0;
}
