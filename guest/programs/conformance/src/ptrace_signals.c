// ptrace: signals that tracers see, suppress, change and inject; group-stops of attached and of seized tracees; ends of tracers.
#include "tracer.h"

static volatile sig_atomic_t got, code_of, value_of;

static void on_info(int sig, siginfo_t *info, void *context)
{
	(void)context;
	got = sig;
	code_of = info->si_code;
	value_of = info->si_code == SI_QUEUE ? info->si_value.sival_int : (int)info->si_pid;
}

static int sends(void)
{
	on_siginfo(SIGUSR1, on_info, 0);
	on_siginfo(SIGUSR2, on_info, 0);
	for (int i = 0; i < 5; i++) {
		got = code_of = 0;
		syscall(SYS_tkill, getpid(), SIGUSR1);
		char text[64];
		int n = snprintf(text, sizeof text, "  got %d code %d from its parent %d\n", got, code_of, value_of == getppid());
		CHECK(write(1, text, n) == n);
	}
	return 0;
}

static void delivered(void)
{
	printf("-- delivery\n");
	pid_t pid = traced(sends);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	let_go(PTRACE_CONT, pid, SIGUSR1);
	// Suppressed.
	let_go(PTRACE_CONT, pid, 0);
	// Another signal.
	let_go(PTRACE_CONT, pid, SIGUSR2);
	// With another siginfo.
	siginfo_t info;
	CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
	info.si_code = SI_QUEUE;
	info.si_value.sival_int = 1234;
	SHOW(trace(PTRACE_SETSIGINFO, pid, 0, &info));
	let_go(PTRACE_CONT, pid, SIGUSR1);
	// A signal that is now blocked stays pending, and is reported again.
	uint64_t mask = 1 << (SIGUSR1 - 1);
	CHECK(trace(PTRACE_SETSIGMASK, pid, 8, &mask) == 0);
	let_go(PTRACE_CONT, pid, SIGUSR1);
	printf("%s\n", "the end");
}

static int ignores(void)
{
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	raise(SIGCHLD);
	raise(SIGWINCH);
	raise(SIGCONT);
	raise(SIGTERM);
	return 7;
}

static void ignored(void)
{
	printf("-- ignored signals\n");
	pid_t pid = traced(ignores);
	for (int i = 0; i < 4; i++) {
		let_go(PTRACE_CONT, pid, 0);
		show_info(pid);
	}
	let_go(PTRACE_CONT, pid, SIGUSR1);
	let_go(PTRACE_CONT, pid, 0);
	pid = traced(ignores);
	for (int i = 0; i < 5; i++)
		let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_CONT, pid, SIGTERM);
	// SIGKILL is not reported to the tracer first.
	pid = traced(ignores);
	CHECK(kill(pid, SIGKILL) == 0);
	await(pid);
}

static int faults(void)
{
	*(volatile int *)16 = 1;
	return 0;
}

static void faulted(void)
{
	printf("-- a fault\n");
	pid_t pid = traced(faults);
	let_go(PTRACE_CONT, pid, 0);
	siginfo_t info;
	CHECK(trace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
	printf("address %lx code %d\n", (long)info.si_addr, info.si_code);
	// Suppressed, the fault happens again.
	let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_CONT, pid, SIGSEGV);
}

static int injected_at_exit(void)
{
	on_siginfo(SIGUSR1, on_info, 0);
	syscall(SYS_getpriority, 0, 0);
	return got == SIGUSR1 && code_of == SI_KERNEL ? 0 : 1;
}

// At the stops of system calls an injected signal is sent.
static void injected(void)
{
	printf("-- injected\n");
	for (int when = 0; when < 2; when++) {
		pid_t pid = traced(injected_at_exit);
		do {
			int status;
			CHECK(trace(PTRACE_SYSCALL, pid, 0, NULL) == 0 && waitpid(pid, &status, 0) == pid);
		} while (registers(pid).orig_rax != SYS_getpriority);
		if (when == 1)
			let_go(PTRACE_SYSCALL, pid, 0);
		let_go(PTRACE_CONT, pid, SIGUSR1);
		show_info(pid);
		let_go(PTRACE_CONT, pid, SIGUSR1);
	}
}

static int spins(void)
{
	for (;;)
		pause();
	return 0;
}

static int stops(void)
{
	raise(SIGTSTP);
	return 0;
}

static void group_stops(void)
{
	printf("-- group-stop, traced from the start\n");
	setpgid(0, 0);
	pid_t pid = traced(spins);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	CHECK(kill(pid, SIGSTOP) == 0);
	await(pid);
	show_info(pid);
	// Delivered, the signal stops the process: a second stop, without a siginfo.
	let_go(PTRACE_CONT, pid, SIGSTOP);
	show_info(pid);
	SHOW(trace(PTRACE_LISTEN, pid, 0, NULL));
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	CHECK(kill(pid, SIGCONT) == 0);
	await(pid);
	show_info(pid);
	CHECK(kill(pid, SIGKILL) == 0);
	await(pid);
	pid = traced(stops);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	let_go(PTRACE_CONT, pid, SIGSTOP);
	show_info(pid);
	let_go(PTRACE_CONT, pid, 0);
}

static pid_t plain(int (*f)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(f());
	return pid;
}

static void attached(void)
{
	printf("-- attached\n");
	pid_t pid = plain(spins);
	until_state(pid, 'S');
	SHOW(trace(PTRACE_ATTACH, pid, 0, NULL));
	await(pid);
	show_info(pid);
	struct user_regs_struct r = registers(pid);
	printf("call %lld result %lld\n", (long long)r.orig_rax, (long long)r.rax);
	SHOW(trace(PTRACE_DETACH, pid, 0, NULL));
	until_state(pid, 'S');
	// A stopped process: a stop for the group-stop, and one for the SIGSTOP of the attachment.
	CHECK(kill(pid, SIGSTOP) == 0);
	int status;
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	printf("%s\n", stop_text(status));
	SHOW(trace(PTRACE_ATTACH, pid, 0, NULL));
	printf("state %c\n", state(pid));
	await(pid);
	show_info(pid);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	// After detaching the group-stop is in force again.
	SHOW(trace(PTRACE_DETACH, pid, 0, NULL));
	until_state(pid, 'T');
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(waitpid(pid, &status, WCONTINUED) == pid);
	printf("%s\n", stop_text(status));
	until_state(pid, 'S');
	CHECK(kill(pid, SIGKILL) == 0);
	await(pid);
}

static void seized(void)
{
	printf("-- seized\n");
	pid_t pid = plain(spins);
	until_state(pid, 'S');
	SHOW(trace(PTRACE_SEIZE, pid, 0, NULL));
	printf("state %c\n", state(pid));
	SHOW(trace(PTRACE_LISTEN, pid, 0, NULL));
	SHOW(trace(PTRACE_INTERRUPT, pid, 0, NULL));
	await(pid);
	show_info(pid);
	// A second stop at once, as the tracee was interrupted while it was stopped.
	SHOW(trace(PTRACE_INTERRUPT, pid, 0, NULL));
	let_go(PTRACE_CONT, pid, 0);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	// A group-stop, with PTRACE_LISTEN.
	CHECK(kill(pid, SIGSTOP) == 0);
	await(pid);
	show_info(pid);
	let_go(PTRACE_CONT, pid, SIGSTOP);
	show_info(pid);
	SHOW(trace(PTRACE_LISTEN, pid, 0, NULL));
	SHOW(trace(PTRACE_LISTEN, pid, 0, NULL));
	SHOW(waitpid(pid, NULL, __WALL | WNOHANG));
	CHECK(kill(pid, SIGCONT) == 0);
	await(pid);
	show_info(pid);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	// A listening tracee can be interrupted.
	CHECK(kill(pid, SIGTSTP) == 0);
	await(pid);
	let_go(PTRACE_CONT, pid, SIGSTOP);
	SHOW(trace(PTRACE_LISTEN, pid, 0, NULL));
	SHOW(trace(PTRACE_INTERRUPT, pid, 0, NULL));
	await(pid);
	show_info(pid);
	CHECK(kill(pid, SIGCONT) == 0);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	// Detached with a signal.
	SHOW(trace(PTRACE_DETACH, pid, 0, DATA(SIGTERM)));
	await(pid);
	// A stopped process is stopped for its tracer at once.
	pid = plain(spins);
	until_state(pid, 'S');
	CHECK(kill(pid, SIGSTOP) == 0);
	int status;
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	SHOW(trace(PTRACE_SEIZE, pid, 0, NULL));
	await(pid);
	show_info(pid);
	SHOW(trace(PTRACE_DETACH, pid, 0, NULL));
	until_state(pid, 'T');
	CHECK(kill(pid, SIGKILL) == 0);
	await(pid);
}

// tracer_ends has a grandchild traced by a child that ends.
static void tracer_ends(unsigned long options, int signal_first)
{
	printf("-- the tracer ends, options %lx, %d\n", options, signal_first);
	fflush(stdout);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	pid_t *grandchild = shared_memory(4096);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		pid_t g = fork();
		if (g == 0) {
			on_siginfo(SIGUSR1, on_info, 0);
			pause();
			_exit(got == SIGUSR1 ? 11 : 12);
		}
		*grandchild = g;
		CHECK(trace(PTRACE_SEIZE, g, 0, DATA(options)) == 0);
		until_state(g, 'S');
		if (signal_first) {
			// A signal that has not been reported to the tracer is delivered.
			CHECK(kill(g, SIGUSR1) == 0);
			until_state(g, 't');
		} else {
			CHECK(trace(PTRACE_INTERRUPT, g, 0, NULL) == 0);
			await(g);
		}
		fflush(stdout);
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
	if (!signal_first && options == 0) {
		until_state(*grandchild, 'S');
		CHECK(kill(*grandchild, SIGTERM) == 0);
	}
	printf("%s\n", status_text(wait_for(*grandchild)));
}

int main(void)
{
	delivered();
	ignored();
	faulted();
	injected();
	group_stops();
	attached();
	seized();
	tracer_ends(0, 0);
	tracer_ends(0, 1);
	tracer_ends(PTRACE_O_EXITKILL, 0);
	return 0;
}
