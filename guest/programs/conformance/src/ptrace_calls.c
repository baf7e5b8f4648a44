// ptrace: stops at the entry and the exit of system calls; calls that the tracer changes, skips and emulates, and calls that signals interrupt.
#include "tracer.h"

#include <poll.h>
#include <sys/epoll.h>

static int pipe_ends[2];

// show_call prints the system call at whose entry or exit the tracee is stopped.
static struct user_regs_struct show_call(pid_t pid)
{
	struct user_regs_struct r = registers(pid);
	printf("call %lld result %lld message %lu\n", (long long)r.orig_rax, (long long)r.rax, message(pid));
	return r;
}

static void show_call_info(pid_t pid)
{
	struct __ptrace_syscall_info info;
	memset(&info, 0xee, sizeof info);
	long n = trace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
	struct user_regs_struct r = registers(pid);
	printf("info %ld op %d arch %x at the registers %d", n, info.op, info.arch, info.instruction_pointer == r.rip && info.stack_pointer == r.rsp);
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		printf(" number %ld argument %lx", (long)info.entry.nr, (long)info.entry.args[0]);
	if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		printf(" result %ld error %d", (long)info.exit.rval, info.exit.is_error);
	printf("\n");
}

static int calls(void)
{
	syscall(SYS_getpriority, 1, 2, 3);
	syscall(-1);
	syscall(1008);
	__asm__ volatile("int3");
	return 5;
}

static void plain(int good)
{
	printf("-- entry and exit, %d\n", good);
	pid_t pid = traced(calls);
	if (good)
		CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESYSGOOD)) == 0);
	show_call_info(pid);
	for (int i = 0; i < 6; i++) {
		let_go(PTRACE_SYSCALL, pid, 0);
		show_info(pid);
		show_call_info(pid);
		show_call(pid);
	}
	let_go(PTRACE_SYSCALL, pid, 0);
	show_info(pid);
	show_call_info(pid);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	char buf[8];
	SHOW(trace(PTRACE_GET_SYSCALL_INFO, pid, 8, buf));
	SHOW(trace(PTRACE_GET_SYSCALL_INFO, pid, 0, NULL));
	let_go(PTRACE_CONT, pid, 0);
}

static int changed(void)
{
	long r[8];
	r[0] = syscall(SYS_getpriority, 9, 9, 9);
	r[1] = syscall(SYS_getpriority, 9, 9, 9);
	r[2] = syscall(SYS_getpriority, 9, 9, 9);
	r[3] = syscall(SYS_getpriority, 9, 9, 9);
	r[4] = syscall(SYS_getpriority, 9, 9, 9);
	return r[0] == 4 && r[1] == getpid() && r[2] == 4242 && r[3] == -1 && r[4] == 99 ? 0 : 1;
}

// The tracer writes a call's arguments, number and result.
static void change(void)
{
	printf("-- changed calls\n");
	write_file("text", "four");
	int fd = open("text", O_RDONLY);
	pid_t pid = traced(changed);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESYSGOOD)) == 0);
	// Another number and other arguments.
	let_go(PTRACE_SYSCALL, pid, 0);
	struct user_regs_struct r = registers(pid);
	r.orig_rax = SYS_read;
	r.rdi = fd;
	r.rsi = r.rsp - 512;
	r.rdx = 100;
	set_registers(pid, r);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	// A change of RAX at the entry does not change the number.
	let_go(PTRACE_SYSCALL, pid, 0);
	r = registers(pid);
	r.orig_rax = SYS_getpid;
	r.rax = SYS_getppid;
	set_registers(pid, r);
	let_go(PTRACE_SYSCALL, pid, 0);
	printf("%d\n", registers(pid).rax == (unsigned long)pid);
	// A call that is skipped, with a result.
	let_go(PTRACE_SYSCALL, pid, 0);
	r = registers(pid);
	r.orig_rax = -1;
	r.rax = 4242;
	set_registers(pid, r);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	// A call that is skipped, with the result that RAX already has.
	let_go(PTRACE_SYSCALL, pid, 0);
	CHECK(trace(PTRACE_POKEUSER, pid, 15 * 8, DATA(-1)) == 0);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	// Another result at the exit.
	let_go(PTRACE_SYSCALL, pid, 0);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	CHECK(trace(PTRACE_POKEUSER, pid, 10 * 8, DATA(99)) == 0);
	let_go(PTRACE_CONT, pid, 0);
	close(fd);
}

static int emulated(void) { return syscall(SYS_exit_group, 1) == 7 && syscall(SYS_getpid) == 8 ? 6 : 1; }

static void emulate(void)
{
	printf("-- emulated calls\n");
	pid_t pid = traced(emulated);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESYSGOOD)) == 0);
	// The return from tkill is not reported.
	let_go(PTRACE_SYSEMU, pid, 0);
	struct user_regs_struct r = show_call(pid);
	while (r.orig_rax != SYS_exit_group) { // calls that libc makes before
		r.rax = -ENOSYS;
		let_go(PTRACE_SYSEMU, pid, 0);
		r = show_call(pid);
	}
	r.rax = 7;
	set_registers(pid, r);
	let_go(PTRACE_SYSEMU, pid, 0);
	r = show_call(pid);
	r.rax = 8;
	set_registers(pid, r);
	let_go(PTRACE_CONT, pid, 0);
}

static void on_usr(int sig) { (void)sig; }

static int reads(void)
{
	char c;
	on_signal(SIGUSR1, on_usr, SA_RESTART);
	CHECK(read(pipe_ends[0], &c, 1) == 1);
	on_signal(SIGUSR1, on_usr, 0);
	return read(pipe_ends[0], &c, 1) == -1 && errno == EINTR ? 0 : 1;
}

// to_call continues the tracee up to the entry of a call.
static void to_call(pid_t pid, long number)
{
	int status;
	do {
		CHECK(trace(PTRACE_SYSCALL, pid, 0, NULL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	} while (registers(pid).orig_rax != (unsigned long)number || message(pid) != 1);
}

// interrupt lets the tracee begin the call at whose entry it is, and interrupts it by
// a signal.
static void interrupt(pid_t pid, int sig)
{
	CHECK(trace(PTRACE_SYSCALL, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	CHECK(kill(pid, sig) == 0);
	await(pid);
	show_call(pid);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_info(pid);
	show_call(pid);
}

static void interrupted(void)
{
	printf("-- read, restarted and not\n");
	CHECK(pipe(pipe_ends) == 0);
	pid_t pid = traced(reads);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESYSGOOD)) == 0);
	to_call(pid, SYS_read);
	// A signal that the tracer suppresses: the call is restarted.
	interrupt(pid, SIGUSR1);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	// With the handler and SA_RESTART the handler returns first.
	interrupt(pid, SIGUSR1);
	let_go(PTRACE_SYSCALL, pid, SIGUSR1);
	show_call(pid);
	let_go(PTRACE_SYSCALL, pid, 0);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	to_call(pid, SYS_read);
	interrupt(pid, SIGUSR1);
	// Without SA_RESTART the call fails, as the handler's frame shows.
	let_go(PTRACE_SYSCALL, pid, SIGUSR1);
	show_call(pid);
	let_go(PTRACE_SYSCALL, pid, 0);
	show_call(pid);
	let_go(PTRACE_CONT, pid, 0);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static int sleeps(void)
{
	struct timespec t = {0, 30 * MSEC};
	return nanosleep(&t, NULL);
}

static int waits_for_futex(void)
{
	int word = 1;
	struct timespec t = {0, 30 * MSEC};
	return syscall(SYS_futex, &word, 128, 1, &t) == -1 && errno == ETIMEDOUT ? 0 : 1;
}

static int polls(void)
{
	struct pollfd p = {-1, 0, 0};
	return syscall(SYS_poll, &p, 1, 30);
}

static int sleeps_until(void)
{
	struct timespec t = after(CLOCK_MONOTONIC, 30 * MSEC);
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int selects(void)
{
	struct timeval t = {0, 30000};
	return syscall(SYS_select, 0, NULL, NULL, NULL, &t);
}

static int pauses(void)
{
	signal(SIGUSR1, SIG_IGN);
	return pause();
}

static int epolls(void)
{
	struct epoll_event e;
	int fd = epoll_create1(0);
	return epoll_wait(fd, &e, 1, 30) == -1 && errno == EINTR ? 0 : 1;
}

static int waits_for_signal(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	struct timespec t = {5, 0};
	return sigtimedwait(&set, NULL, &t) == -1 && errno == EINTR ? 0 : 1;
}

// resumed interrupts a call by a signal that is suppressed: the call continues, by itself or by
// restart_syscall, or fails.
static void resumed(const char *what, int (*f)(void), long number)
{
	printf("-- %s\n", what);
	pid_t pid = traced(f);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESYSGOOD)) == 0);
	to_call(pid, number);
	interrupt(pid, SIGUSR1);
	int status = let_go(PTRACE_SYSCALL, pid, 0);
	struct user_regs_struct r = show_call(pid);
	if (r.orig_rax == (unsigned long)number || r.orig_rax == SYS_restart_syscall) {
		if (f == pauses) {
			CHECK(kill(pid, SIGKILL) == 0);
			await(pid);
			return;
		}
		let_go(PTRACE_SYSCALL, pid, 0);
		show_call(pid);
	}
	if (WIFSTOPPED(status))
		let_go(PTRACE_CONT, pid, 0);
}

static int restarts_nothing(void) { return syscall(SYS_restart_syscall) == -1 && errno == EINTR ? 0 : 1; }

int main(void)
{
	plain(1);
	plain(0);
	change();
	emulate();
	interrupted();
	resumed("nanosleep", sleeps, SYS_clock_nanosleep);
	resumed("futex", waits_for_futex, SYS_futex);
	resumed("poll", polls, SYS_poll);
	resumed("absolute sleep", sleeps_until, SYS_clock_nanosleep);
	resumed("select", selects, SYS_select);
	resumed("pause", pauses, SYS_pause);
	resumed("epoll_wait", epolls, SYS_epoll_wait);
	resumed("sigtimedwait", waits_for_signal, SYS_rt_sigtimedwait);
	pid_t pid = traced(restarts_nothing);
	let_go(PTRACE_CONT, pid, 0);
	return 0;
}
