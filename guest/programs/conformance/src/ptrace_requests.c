// ptrace: requests about a stopped tracee's memory, registers, signals and options, and the errors of requests.
#include "tracer.h"

#include <stddef.h>

static volatile long word = 0x1122334455667788;
static const volatile long constant = 77;
static long *shared_word;

static int idle(void) { return 3; }

static void errors(void)
{
	pid_t pid = traced(idle);
	long w;
	SHOW(trace(PTRACE_ATTACH, pid, 0, NULL));
	SHOW(trace(PTRACE_ATTACH, getpid(), 0, NULL));
	SHOW(trace(PTRACE_ATTACH, 0, 0, NULL));
	SHOW(trace(PTRACE_ATTACH, -1, 0, NULL));
	SHOW(trace(PTRACE_SEIZE, pid, 1, NULL));
	SHOW(trace(PTRACE_SEIZE, pid, 0, DATA(0x400)));
	SHOW(trace(PTRACE_SEIZE, pid, 0, NULL));
	SHOW(trace(PTRACE_INTERRUPT, pid, 0, NULL));
	SHOW(trace(PTRACE_LISTEN, pid, 0, NULL));
	SHOW(trace(PTRACE_PEEKDATA, getpid(), 0, &w));
	SHOW(trace(PTRACE_PEEKDATA, getppid(), 0, &w));
	SHOW(trace(77, pid, 0, NULL));
	SHOW(trace(-1, pid, 0, NULL));
	SHOW(trace(PTRACE_CONT, pid, 0, DATA(65)));
	SHOW(trace(PTRACE_CONT, pid, 0, DATA(-1)));
	SHOW(trace(PTRACE_SYSCALL, pid, 0, DATA(99)));
	SHOW(trace(PTRACE_SINGLESTEP, pid, 0, DATA(99)));
	SHOW(trace(PTRACE_DETACH, pid, 0, DATA(65)));
	SHOW(trace(PTRACE_SETOPTIONS, pid, 0, DATA(0x400)));
	SHOW(trace(PTRACE_SETOPTIONS, pid, 0, DATA(0x1000ff)));
	SHOW(trace(PTRACE_GETEVENTMSG, pid, 0, NULL));
	SHOW(trace(PTRACE_GETFPXREGS, pid, 0, &w));
	SHOW(trace(PTRACE_GETREGS, pid, 0, NULL));
	SHOW(trace(PTRACE_SETREGS, pid, 0, NULL));
	SHOW(trace(PTRACE_GETSIGINFO, pid, 0, NULL));
	SHOW(trace(PTRACE_SECCOMP_GET_FILTER, pid, 0, NULL));
	SHOW(kill(pid, 0));
	let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_CONT, pid, 0);
	// A running tracee cannot be inspected, and a zombie cannot be attached.
	pid = traced(pause);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	SHOW(trace(PTRACE_GETREGS, pid, 0, &w));
	SHOW(trace(PTRACE_CONT, pid, 0, NULL));
	SHOW(trace(PTRACE_KILL, pid, 0, NULL));
	printf("%s\n", status_text(wait_for(pid)));
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(0);
	until_state(pid, 'Z');
	SHOW(trace(PTRACE_ATTACH, pid, 0, NULL));
	wait_for(pid);
	SHOW(trace(PTRACE_TRACEME, 0, 0, NULL));
	SHOW(trace(PTRACE_TRACEME, 0, 0, NULL));
}

static int check_memory(void)
{
	return word == 0x99 && constant == 78 && *shared_word == 5 ? 0 : 1;
}

static void memory(void)
{
	pid_t pid = traced(check_memory);
	long w = 0;
	SHOW(trace(PTRACE_PEEKDATA, pid, (unsigned long)&word, &w));
	printf("%lx\n", w);
	errno = 0;
	printf("%lx\n", ptrace(PTRACE_PEEKTEXT, pid, (char *)&word + 3, NULL) & 0xffffffffff);
	SHOW(trace(PTRACE_POKEDATA, pid, (unsigned long)&word, DATA(0x99)));
	SHOW(trace(PTRACE_POKETEXT, pid, (unsigned long)&constant, DATA(78)));
	printf("%d %ld\n", word == 0x99, constant);
	// Shared memory without write permission does not change.
	long *locked = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(locked != MAP_FAILED);
	SHOW(trace(PTRACE_POKEDATA, pid, (unsigned long)locked, DATA(1)));
	SHOW(trace(PTRACE_POKEDATA, pid, (unsigned long)shared_word, DATA(5)));
	printf("%ld\n", *shared_word);
	SHOW(trace(PTRACE_PEEKDATA, pid, 0, &w));
	SHOW(trace(PTRACE_PEEKDATA, pid, -8UL, &w));
	SHOW(trace(PTRACE_POKEDATA, pid, 16, DATA(1)));
	SHOW(trace(PTRACE_PEEKDATA, pid, (unsigned long)&word, NULL));
	let_go(PTRACE_CONT, pid, 0);
}

// computes returns a number that the tracer puts into a register.
static int computes(void)
{
	unsigned char r;
	__asm__ volatile("movb $1, %%bl\n\tint3\n\tmovb %%bl, %0" : "=r"(r) : : "rbx");
	return r;
}

static void general_registers(void)
{
	pid_t pid = traced(computes);
	let_go(PTRACE_CONT, pid, 0);
	struct user_regs_struct r = registers(pid), other;
	printf("%d orig %lld cs %llx ss %llx flags %llx ds %llx es %llx fs %llx gs %llx\n", (int)(r.rbx & 0xff), (long long)r.orig_rax, r.cs, r.ss,
	       r.eflags & ~0xcd5ULL, r.ds, r.es, r.fs, r.gs);
	CHECK(r.fs_base != 0 && r.gs_base == 0);
	long w;
	SHOW(trace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), &w));
	printf("%d\n", (unsigned long)w == r.rip);
	SHOW(trace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip) + 4, &w));
	SHOW(trace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_tsize), &w));
	printf("%ld\n", w);
	SHOW(trace(PTRACE_PEEKUSER, pid, 920, &w));
	SHOW(trace(PTRACE_PEEKUSER, pid, 928, &w));
	SHOW(trace(PTRACE_PEEKUSER, pid, -8UL, &w));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, u_tsize), DATA(1)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.cs), DATA(0x33)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.cs), DATA(0)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.cs), DATA(0x10)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.ds), DATA(0)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.ds), DATA(0x10)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.fs_base), DATA(0x7ffffffff000)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.gs_base), DATA(-1)));
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.eflags), DATA(-1)));
	SHOW(trace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.eflags), &w));
	printf("%lx\n", w);
	SHOW(trace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.eflags), NULL));
	SHOW(trace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.eflags), &w));
	printf("%lx\n", w);
	// Register sets of other lengths.
	struct iovec v = {&other, sizeof other};
	SHOW(trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v));
	printf("%d %d\n", (int)v.iov_len, other.rip == r.rip && other.rbx == r.rbx);
	v.iov_len = 4096;
	SHOW(trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v));
	printf("%d\n", (int)v.iov_len);
	v.iov_len = 100;
	SHOW(trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v));
	v.iov_len = 8;
	SHOW(trace(PTRACE_GETREGSET, pid, 77, &v));
	SHOW(trace(PTRACE_GETREGSET, pid, NT_386_IOPERM, &v));
	SHOW(trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, NULL));
	r.rbx = 44;
	v = (struct iovec){&r, sizeof r};
	SHOW(trace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v));
	let_go(PTRACE_CONT, pid, 0);
}

static int adds(void)
{
	double a = 1.5, b = 2;
	__asm__ volatile("movsd %1, %%xmm3\n\tint3\n\tmovsd %%xmm3, %0" : "=m"(b) : "m"(a) : "xmm3");
	return (int)b;
}

static void floating_point(void)
{
	pid_t pid = traced(adds);
	let_go(PTRACE_CONT, pid, 0);
	struct user_fpregs_struct f;
	SHOW(trace(PTRACE_GETFPREGS, pid, 0, &f));
	double d;
	memcpy(&d, &f.xmm_space[3 * 4], sizeof d);
	printf("%g cwd %x ftw %x mxcsr %x\n", d, f.cwd, f.ftw, f.mxcsr & 0x1f80);
	d = 42;
	memcpy(&f.xmm_space[3 * 4], &d, sizeof d);
	SHOW(trace(PTRACE_SETFPREGS, pid, 0, &f));
	struct iovec v = {&f, 4096};
	SHOW(trace(PTRACE_GETREGSET, pid, NT_PRFPREG, &v));
	memcpy(&d, &f.xmm_space[3 * 4], sizeof d);
	printf("%g %d\n", d, (int)v.iov_len);
	d = 43;
	memcpy(&f.xmm_space[3 * 4], &d, sizeof d);
	SHOW(trace(PTRACE_SETREGSET, pid, NT_PRFPREG, &v));
	let_go(PTRACE_CONT, pid, 0);
}

static int blocks_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	union sigval v = {.sival_int = 7};
	syscall(SYS_tkill, getpid(), SIGUSR2);
	sigqueue(getpid(), SIGRTMIN, v);
	v.sival_int = 8;
	sigqueue(getpid(), SIGRTMIN, v);
	kill(getpid(), SIGUSR1);
	raise(SIGSTOP);
	return 0;
}

static void signals(void)
{
	pid_t pid = traced(blocks_signals);
	let_go(PTRACE_CONT, pid, 0);
	uint64_t mask = 0;
	SHOW(trace(PTRACE_GETSIGMASK, pid, 8, &mask));
	printf("%lx\n", (long)mask);
	SHOW(trace(PTRACE_GETSIGMASK, pid, 4, &mask));
	SHOW(trace(PTRACE_SETSIGMASK, pid, 16, &mask));
	siginfo_t info[8];
	for (int flags = 0; flags < 2; flags++) {
		struct __ptrace_peeksiginfo_args a = {0, flags, 8};
		long n = trace(PTRACE_PEEKSIGINFO, pid, (unsigned long)&a, info);
		printf("%ld:", n);
		for (int i = 0; i < n; i++)
			printf(" %s %d %d", signal_name(info[i].si_signo), info[i].si_code, info[i].si_code == SI_QUEUE ? info[i].si_value.sival_int : 0);
		printf("\n");
	}
	struct __ptrace_peeksiginfo_args a = {1, 1, 1};
	SHOW(trace(PTRACE_PEEKSIGINFO, pid, (unsigned long)&a, info));
	printf("%s\n", signal_name(info[0].si_signo));
	a.off = 9;
	SHOW(trace(PTRACE_PEEKSIGINFO, pid, (unsigned long)&a, info));
	a.off = 0;
	a.flags = 2;
	SHOW(trace(PTRACE_PEEKSIGINFO, pid, (unsigned long)&a, info));
	a.flags = 1;
	a.nr = -1;
	SHOW(trace(PTRACE_PEEKSIGINFO, pid, (unsigned long)&a, info));
	SHOW(trace(PTRACE_PEEKSIGINFO, pid, 0, info));
	a.nr = 1;
	SHOW(trace(PTRACE_PEEKSIGINFO, pid, (unsigned long)&a, NULL));
	mask = -1;
	SHOW(trace(PTRACE_SETSIGMASK, pid, 8, &mask));
	SHOW(trace(PTRACE_GETSIGMASK, pid, 8, &mask));
	printf("%lx\n", (long)mask);
	mask = 1 << (SIGUSR1 - 1);
	SHOW(trace(PTRACE_SETSIGMASK, pid, 8, &mask));
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	siginfo_t one;
	CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &one) == 0);
	printf("value %d\n", one.si_value.sival_int);
	let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_CONT, pid, 0);
}

static int with_arch(void)
{
	__asm__ volatile("int3");
	unsigned long gs = 0;
	syscall(SYS_arch_prctl, 0x1004, &gs);
	return gs == 0x5000 ? 0 : 1;
}

static void arch(void)
{
	pid_t pid = traced(with_arch);
	let_go(PTRACE_CONT, pid, 0);
	unsigned long base = 0;
	struct user_regs_struct r = registers(pid);
	SHOW(trace(PTRACE_ARCH_PRCTL, pid, (unsigned long)&base, DATA(0x1003)));
	printf("%d\n", base == r.fs_base);
	SHOW(trace(PTRACE_ARCH_PRCTL, pid, 0x5000, DATA(0x1001)));
	SHOW(trace(PTRACE_ARCH_PRCTL, pid, 0x7ffffffff000, DATA(0x1001)));
	SHOW(trace(PTRACE_ARCH_PRCTL, pid, (unsigned long)&base, DATA(0x5555)));
	let_go(PTRACE_CONT, pid, 0);
}

// status_of prints lines of a tracee's status and the state of its threads.
static void status_of(void)
{
	pid_t pid = traced(pause);
	char path[64], text[4096], *line;
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	CHECK(read_file(path, text, sizeof text) > 0);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (strncmp(line, "TracerPid:", 10) == 0)
			printf("traced by us %d\n", atoi(line + 10) == getpid());
		if (strncmp(line, "State:", 6) == 0)
			printf("%s\n", line);
	}
	snprintf(path, sizeof path, "/proc/%d/wchan", pid);
	CHECK(read_file(path, text, sizeof text) >= 0);
	snprintf(path, sizeof path, "/proc/%d/syscall", pid);
	CHECK(read_file(path, text, sizeof text) > 0);
	printf("call %d\n", atoi(text) == SYS_tgkill);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	CHECK(read_file(path, text, sizeof text) > 0);
	printf("call %d\n", atoi(text));
	CHECK(kill(pid, SIGKILL) == 0);
	printf("%s\n", status_text(wait_for(pid)));
}

int main(void)
{
	shared_word = shared_memory(4096);
	memory();
	general_registers();
	floating_point();
	signals();
	arch();
	status_of();
	errors();
	return 0;
}
