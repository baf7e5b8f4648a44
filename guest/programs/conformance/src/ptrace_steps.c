// ptrace: single steps, and breakpoints that are written into code.
#include "tracer.h"

static volatile long waiting;
static volatile sig_atomic_t handled;

static void on_usr(int sig) { handled = sig; }

// Addresses of the instructions that are stepped.
extern char steps_begin[], steps_string[], steps_call[], steps_pushf[], steps_end[];

static int steps(void)
{
	char from[4] = "abc", to[4];
	long result;
	__asm__ volatile("int3\n"
			 "steps_begin:\n\t"
			 "movl $3, %%ecx\n\t"
			 "cld\n"
			 "steps_string:\n\t"
			 "rep movsb\n\t"
			 "movl %[getpid], %%eax\n"
			 "steps_call:\n\t"
			 "syscall\n\t"
			 "nop\n"
			 "steps_end:\n\t"
			 "nop"
			 : "=a"(result)
			 : "S"(from), "D"(to), [getpid] "i"(SYS_getpid)
			 : "rcx", "r11", "memory");
	return result == getpid() && to[2] == 'c' ? 0 : 1;
}

static const char *place(unsigned long rip)
{
	static char text[64];
	if (rip >= (unsigned long)steps_begin && rip <= (unsigned long)steps_end)
		snprintf(text, sizeof text, "%ld after the first", (long)(rip - (unsigned long)steps_begin));
	else
		snprintf(text, sizeof text, "elsewhere");
	return text;
}

static void single_steps(void)
{
	printf("-- steps\n");
	pid_t pid = traced(steps);
	let_go(PTRACE_CONT, pid, 0);
	printf("%s\n", place(registers(pid).rip));
	for (int i = 0; i < 9; i++) {
		let_go(PTRACE_SINGLESTEP, pid, 0);
		siginfo_t info;
		CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
		struct user_regs_struct r = registers(pid);
		printf("%s rcx %s code %d at the address %d orig %lld trap flag %d\n", place(r.rip), r.rcx <= 3 ? (char[]){'0' + r.rcx, 0} : "large",
		       info.si_code, info.si_addr == (void *)r.rip, (long long)r.orig_rax, !!(r.eflags & 0x100));
	}
	let_go(PTRACE_CONT, pid, 0);
}

static int loops(void)
{
	long n = 0;
	__asm__ volatile("int3\n\t"
			 "movl $1000, %%ecx\n"
			 "1:\n\t"
			 "incq %0\n\t"
			 "loop 1b\n\t"
			 "int3"
			 : "+r"(n)
			 :
			 : "rcx");
	return n == 1000 ? 0 : 1;
}

// As many steps as instructions.
static void counted(void)
{
	printf("-- a loop\n");
	pid_t pid = traced(loops);
	let_go(PTRACE_CONT, pid, 0);
	int n = 0, status;
	siginfo_t info;
	do {
		CHECK(trace(PTRACE_SINGLESTEP, pid, 0, NULL) == 0 && waitpid(pid, &status, 0) == pid);
		CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
		n++;
	} while (info.si_code == TRAP_TRACE);
	printf("%d steps, code %#x\n", n, info.si_code);
	let_go(PTRACE_CONT, pid, 0);
}

static int raises(void)
{
	on_signal(SIGUSR1, on_usr, 0);
	__asm__ volatile("int3");
	kill(getpid(), SIGUSR1);
	return handled == SIGUSR1 ? 0 : 1;
}

// A step into a handler ends before its first instruction.
static void into_handler(void)
{
	printf("-- a handler\n");
	pid_t pid = traced(raises);
	let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_SINGLESTEP, pid, SIGUSR1);
	struct user_regs_struct r = registers(pid);
	show_info(pid);
	printf("at the handler %d, its argument %lld\n", r.rip == (unsigned long)on_usr, (long long)r.rdi);
	let_go(PTRACE_SINGLESTEP, pid, 0);
	printf("after it %d\n", registers(pid).rip != r.rip);
	let_go(PTRACE_CONT, pid, 0);
}

__attribute__((noinline)) static long square(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * n;
}

static int squares(void)
{
	long sum = 0;
	for (int i = 1; i <= 3; i++)
		sum += square(i);
	return sum;
}

// A breakpoint as debuggers set it, by both ways to write a tracee's memory.
static void software(int by_file)
{
	printf("-- breakpoint, %d\n", by_file);
	pid_t pid = traced(squares);
	unsigned long at = (unsigned long)square, word, old;
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	// The tracee has executed the function before, so that its code is cached.
	CHECK(trace(PTRACE_PEEKTEXT, pid, at, &old) == 0);
	for (int i = 0; i < 3; i++) {
		word = (old & ~0xffUL) | 0xcc;
		if (by_file)
			CHECK(pwrite(fd, &word, 8, at) == 8);
		else
			CHECK(trace(PTRACE_POKETEXT, pid, at, DATA(word)) == 0);
		let_go(PTRACE_CONT, pid, 0);
		struct user_regs_struct r = registers(pid);
		printf("at it %d, argument %lld\n", r.rip == at + 1, (long long)r.rdi);
		r.rip = at;
		if (i == 1)
			r.rdi = 10;
		set_registers(pid, r);
		if (by_file)
			CHECK(pwrite(fd, &old, 8, at) == 8);
		else
			CHECK(trace(PTRACE_POKETEXT, pid, at, DATA(old)) == 0);
		let_go(PTRACE_SINGLESTEP, pid, 0);
	}
	let_go(PTRACE_CONT, pid, 0);
	close(fd);
}

// In a loop that another core executes meanwhile.
static int turns(void)
{
	waiting = 1;
	while (waiting)
		square(waiting);
	return 3;
}

static void while_it_runs(void)
{
	printf("-- breakpoint in a thread that runs\n");
	pid_t pid = traced(turns);
	unsigned long at = (unsigned long)square, old;
	CHECK(trace(PTRACE_PEEKTEXT, pid, at, &old) == 0);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	for (int i = 0; i < 20; i++)
		nap();
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int fd = open(path, O_RDWR);
	unsigned char int3 = 0xcc;
	CHECK(pwrite(fd, &int3, 1, at) == 1);
	await(pid);
	struct user_regs_struct r = registers(pid);
	printf("at it %d\n", r.rip == at + 1);
	r.rip = at;
	set_registers(pid, r);
	CHECK(trace(PTRACE_POKETEXT, pid, at, DATA(old)) == 0);
	long zero = 0;
	CHECK(pwrite(fd, &zero, 8, (unsigned long)&waiting) == 8);
	let_go(PTRACE_CONT, pid, 0);
	close(fd);
}

int main(void)
{
	square(1);
	single_steps();
	counted();
	into_handler();
	software(0);
	software(1);
	while_it_runs();
	return 0;
}
