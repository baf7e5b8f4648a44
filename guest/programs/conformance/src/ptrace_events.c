// ptrace: stops for new children, execve, exits and filters; waiting for tracees by wait4 and waitid; threads; tracees that are another process's children.
// link: -pthread
#include "tracer.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sched.h>
#include <stddef.h>

static char **arguments;

static int forks(void)
{
	pid_t pid = syscall(SYS_fork);
	if (pid == 0)
		_exit(4);
	return WEXITSTATUS(wait_for(pid)) + 1;
}

static int vforks(void)
{
	pid_t pid = vfork();
	if (pid == 0)
		_exit(5);
	return WEXITSTATUS(wait_for(pid)) + 1;
}

static int clones(void)
{
	pid_t pid = syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
	if (pid == 0)
		_exit(6);
	int status;
	sigset_t set;
	sigemptyset(&set);
	CHECK(waitpid(pid, &status, __WCLONE) == pid);
	return WEXITSTATUS(status) + 1;
}

// child_of follows a tracee that makes a child, which is traced, too.
static void child_of(const char *what, int (*f)(void), unsigned long options, int seized)
{
	printf("-- %s, options %lx, %d\n", what, options, seized);
	fflush(stdout);
	pid_t pid;
	if (seized) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			raise(SIGSTOP);
			signal(SIGUSR1, SIG_IGN);
			_exit(f());
		}
		int status;
		CHECK(waitpid(pid, &status, WUNTRACED) == pid);
		CHECK(trace(PTRACE_SEIZE, pid, 0, DATA(options)) == 0);
		await(pid);
		CHECK(kill(pid, SIGCONT) == 0);
		let_go(PTRACE_CONT, pid, 0);
		let_go(PTRACE_CONT, pid, 0);
	} else {
		pid = traced(f);
		CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(options)) == 0);
	}
	int status = let_go(PTRACE_CONT, pid, 0);
	pid_t child = 0;
	while (WIFSTOPPED(status)) {
		int event = status >> 16;
		if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
			child = message(pid);
			show_info(pid);
			printf("the child: ");
			await(child);
			show_info(child);
			struct user_regs_struct r = registers(child), p = registers(pid);
			printf("the child's call %d result %lld, the parent's %lld %s\n", r.orig_rax == p.orig_rax, (long long)r.rax, (long long)p.orig_rax,
			       p.rax == (unsigned long)child ? "the child" : "none");
			CHECK(trace(PTRACE_CONT, child, 0, NULL) == 0);
		}
		if (event == PTRACE_EVENT_VFORK_DONE) {
			printf("message is the child %d\n", message(pid) == (unsigned long)child);
			await(child);
		}
		int sig = event || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (sig == SIGUSR1)
			sig = 0;
		CHECK(trace(PTRACE_CONT, pid, 0, DATA(sig)) == 0);
		if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_CLONE) {
			printf("the child: ");
			await(child);
		}
		status = await(pid);
	}
}

static int runs_another(void)
{
	execl("/proc/self/exe", arguments[0], "again", NULL);
	return 9;
}

static void programs(void)
{
	for (int event = 0; event < 2; event++) {
		printf("-- execve, event %d\n", event);
		pid_t pid = traced(runs_another);
		CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESYSGOOD | (event ? PTRACE_O_TRACEEXEC : 0))) == 0);
		let_go(PTRACE_SYSCALL, pid, 0);
		printf("call %lld\n", (long long)registers(pid).orig_rax);
		let_go(PTRACE_SYSCALL, pid, 0);
		show_info(pid);
		if (event)
			printf("message is the thread %d\n", message(pid) == (unsigned long)pid);
		printf("call %lld result %lld\n", (long long)registers(pid).orig_rax, (long long)registers(pid).rax);
		if (event)
			let_go(PTRACE_SYSCALL, pid, 0);
		else
			let_go(PTRACE_CONT, pid, 0);
		show_info(pid);
		let_go(PTRACE_CONT, pid, 0);
	}
}

static int exits(void) { return 7; }

static int dies(void)
{
	raise(SIGTERM);
	return 0;
}

static int sleeps(void)
{
	pause();
	return 0;
}

static int kills(void)
{
	kill(getpid(), SIGHUP);
	kill(getpid(), SIGKILL);
	return 0;
}

static void ends(void)
{
	printf("-- ends\n");
	pid_t pid = traced(exits);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACEEXIT)) == 0);
	let_go(PTRACE_CONT, pid, 0);
	printf("message %lx, call %lld state %c\n", message(pid), (long long)registers(pid).orig_rax, state(pid));
	show_info(pid);
	let_go(PTRACE_CONT, pid, 0);
	pid = traced(dies);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACEEXIT)) == 0);
	let_go(PTRACE_CONT, pid, 0);
	let_go(PTRACE_CONT, pid, SIGTERM);
	printf("message %lx\n", message(pid));
	// The tracee is already exiting: signals have no effect.
	CHECK(kill(pid, SIGKILL) == 0);
	nap();
	SHOW(waitpid(pid, NULL, WNOHANG));
	let_go(PTRACE_CONT, pid, 0);
	// A tracee that SIGKILL ends also stops.
	pid = traced(sleeps);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACEEXIT)) == 0);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	CHECK(kill(pid, SIGKILL) == 0);
	await(pid);
	printf("message %lx, call %lld state %c\n", message(pid), (long long)registers(pid).orig_rax, state(pid));
	let_go(PTRACE_CONT, pid, 0);
	// A tracee does not stop at the exit of the call that kills it.
	pid = traced(kills);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)) == 0);
	do
		let_go(PTRACE_SYSCALL, pid, 0);
	while (registers(pid).orig_rax != SYS_kill || registers(pid).rsi != SIGKILL);
	let_go(PTRACE_SYSCALL, pid, 0);
	printf("message %lx, call %lld state %c\n", message(pid), (long long)registers(pid).orig_rax, state(pid));
	let_go(PTRACE_CONT, pid, 0);
}

static int filtered(void)
{
	struct sock_filter list[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 77),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {LEN(list), list};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
	long a = syscall(SYS_getpriority, 0, 0), b = syscall(SYS_getpriority, 0, 0), c = syscall(SYS_getpriority, 0, 0);
	int error = errno;
	long d = syscall(SYS_getpriority, 0, 0);
	return a > 0 && b == 4711 && c == -1 && error == EPROTO && d == getpid() ? 0 : 1;
}

static void filters(void)
{
	printf("-- a filter\n");
	pid_t pid = traced(filtered);
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD)) == 0);
	let_go(PTRACE_CONT, pid, 0);
	show_info(pid);
	struct user_regs_struct r = registers(pid);
	printf("message %lu call %lld result %lld\n", message(pid), (long long)r.orig_rax, (long long)r.rax);
	struct __ptrace_syscall_info info;
	printf("%ld", trace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info));
	printf(" op %d number %d data %d\n", info.op, (int)info.seccomp.nr, info.seccomp.ret_data);
	// The call is made, and its exit is reported under PTRACE_SYSCALL.
	let_go(PTRACE_SYSCALL, pid, 0);
	let_go(PTRACE_CONT, pid, 0);
	// Skipped.
	r = registers(pid);
	r.orig_rax = -1;
	r.rax = 4711;
	set_registers(pid, r);
	let_go(PTRACE_CONT, pid, 0);
	// Changed to another call, which the filter checks again.
	CHECK(trace(PTRACE_POKEUSER, pid, 15 * 8, DATA(SYS_getpgid)) == 0);
	let_go(PTRACE_CONT, pid, 0);
	CHECK(trace(PTRACE_POKEUSER, pid, 15 * 8, DATA(SYS_getpid)) == 0);
	struct sock_filter list[16];
	if (geteuid() == 0) {
		CHECK(trace(PTRACE_SECCOMP_GET_FILTER, pid, 0, NULL) == 6);
		CHECK(trace(PTRACE_SECCOMP_GET_FILTER, pid, 0, list) == 6 && list[2].k == (SECCOMP_RET_TRACE | 77));
		CHECK(trace(PTRACE_SECCOMP_GET_FILTER, pid, 1, list) == -1 && errno == ENOENT);
	}
	let_go(PTRACE_CONT, pid, 0);
}

static int go[2];

static void *thread(void *arg)
{
	char c;
	CHECK(read(go[0], &c, 1) == 1);
	if (arg)
		execl("/proc/self/exe", arguments[0], "again", NULL);
	syscall(SYS_exit, 3);
	return NULL;
}

static int with_threads(void)
{
	for (int i = 0; i < 2; i++)
		start(thread, NULL);
	CHECK(write(go[1], "12", 2) == 2);
	syscall(SYS_exit, 5);
	return 0;
}

// threads waits for the stops of a tracee's new threads.
static void threads(void)
{
	printf("-- threads\n");
	CHECK(pipe(go) == 0);
	pid_t pid = traced(with_threads), ids[2];
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACECLONE)) == 0);
	for (int i = 0; i < 2; i++) {
		let_go(PTRACE_CONT, pid, 0);
		ids[i] = message(pid);
		await(ids[i]);
		show_info(ids[i]);
	}
	// Threads of the tracee are waited for by their ids, and count as children.
	SHOW(waitpid(ids[0], NULL, WNOHANG));
	SHOW(waitpid(ids[0], NULL, WNOHANG | __WCLONE));
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	CHECK(trace(PTRACE_CONT, ids[0], 0, NULL) == 0);
	await(ids[0]);
	// The main thread has ended: its end is reported after those of all others.
	until_state(pid, 'Z');
	SHOW(waitpid(pid, NULL, WNOHANG));
	SHOW(trace(PTRACE_CONT, pid, 0, NULL));
	SHOW(syscall(SYS_tgkill, pid, ids[0], 0));
	CHECK(trace(PTRACE_CONT, ids[1], 0, NULL) == 0);
	siginfo_t info;
	memset(&info, 0, sizeof info);
	SHOW(waitid(P_PID, ids[1], &info, WEXITED | WNOWAIT | __WALL));
	printf("code %d status %d of the thread %d\n", info.si_code, info.si_status, info.si_pid == ids[1]);
	SHOW(waitpid(pid, NULL, WNOHANG));
	await(ids[1]);
	await(pid);
	SHOW(waitpid(-1, NULL, WNOHANG | __WALL));
	close(go[0]);
	close(go[1]);
}

static int program_in_thread(void)
{
	start(thread, (void *)1);
	start(thread, NULL);
	CHECK(write(go[1], "1", 1) == 1);
	for (;;)
		pause();
	return 0;
}

// A thread that is not the main one calls execve: it gets the main thread's id.
static void program_of_thread(void)
{
	printf("-- execve in a thread\n");
	CHECK(pipe(go) == 0);
	pid_t pid = traced(program_in_thread), ids[2];
	CHECK(trace(PTRACE_SETOPTIONS, pid, 0, DATA(PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)) == 0);
	for (int i = 0; i < 2; i++) {
		let_go(PTRACE_CONT, pid, 0);
		ids[i] = message(pid);
		await(ids[i]);
	}
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	until_state(pid, 'S');
	CHECK(trace(PTRACE_CONT, ids[0], 0, NULL) == 0);
	// The other thread ends first, and must be waited for.
	await(ids[1]);
	await(pid);
	printf("message is the thread %d\n", message(pid) == (unsigned long)ids[0]);
	SHOW(waitpid(ids[0], NULL, WNOHANG | __WALL));
	SHOW(trace(PTRACE_CONT, ids[0], 0, NULL));
	let_go(PTRACE_CONT, pid, 0);
	close(go[0]);
	close(go[1]);
}

static void *waits(void *arg)
{
	pid_t pid = (long)arg;
	int status;
	// Another thread of the tracer's process may wait, unless with __WNOTHREAD.
	SHOW(waitpid(pid, &status, __WALL | __WNOTHREAD | WNOHANG));
	CHECK(waitpid(pid, &status, __WALL) == pid);
	printf("%s\n", stop_text(status));
	SHOW(trace(PTRACE_CONT, pid, 0, NULL));
	return NULL;
}

static void waiting(void)
{
	printf("-- waiting\n");
	pid_t pid = traced(exits);
	int status;
	siginfo_t info;
	SHOW(waitpid(pid, &status, WNOHANG));
	SHOW(waitpid(pid, &status, WNOHANG | __WCLONE));
	SHOW(waitid(P_PID, pid, &info, WEXITED | WNOHANG));
	CHECK(trace(PTRACE_SYSCALL, pid, 0, NULL) == 0);
	until_state(pid, 't');
	memset(&info, 0, sizeof info);
	SHOW(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	printf("code %d status %#x of the child %d\n", info.si_code, info.si_status, info.si_pid == pid);
	finish(start(waits, (void *)(long)pid));
	SHOW(waitpid(pid, &status, WNOHANG));
	SHOW(trace(PTRACE_CONT, pid, 0, NULL));
	await(pid);
}

static volatile sig_atomic_t child_code, child_status, children;

static void on_child(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	children++;
	child_code = info->si_code;
	child_status = info->si_status;
}

// notices shows the siginfo of SIGCHLD in a tracer.
static void notices(void)
{
	printf("-- SIGCHLD\n");
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	on_siginfo(SIGCHLD, on_child, 0);
	sigprocmask(SIG_BLOCK, &set, &old);
	pid_t pid = traced(exits);
	sigsuspend(&old);
	printf("code %d status %d\n", child_code, child_status);
	CHECK(trace(PTRACE_SYSCALL, pid, 0, NULL) == 0);
	sigsuspend(&old);
	printf("code %d status %d\n", child_code, child_status);
	await(pid);
	CHECK(trace(PTRACE_CONT, pid, 0, NULL) == 0);
	sigsuspend(&old);
	printf("code %d status %d\n", child_code, child_status);
	await(pid);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGCHLD, SIG_DFL);
}

static int sleeps_long(void)
{
	for (;;)
		pause();
	return 0;
}

// A tracer that is not the parent: the parent can wait after the tracer has.
static void foreign(void)
{
	printf("-- another's child\n");
	fflush(stdout);
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sleeps_long();
		_exit(0);
	}
	until_state(pid, 'S');
	pid_t tracer = fork();
	if (tracer == 0) {
		char c;
		CHECK(trace(PTRACE_SEIZE, pid, 0, NULL) == 0);
		CHECK(trace(PTRACE_INTERRUPT, pid, 0, NULL) == 0);
		await(pid);
		fflush(stdout);
		CHECK(write(ends[1], "s", 1) == 1 && read(ends[0], &c, 0) == 0);
		until_state(pid, 'Z');
		nap();
		await(pid);
		fflush(stdout);
		_exit(0);
	}
	char c;
	CHECK(read(ends[0], &c, 1) == 1);
	// A stop that is reported to the tracer is not reported to the parent.
	int status;
	SHOW(waitpid(pid, &status, WUNTRACED | WNOHANG));
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	printf("%s\n", status_text(status));
	printf("%s\n", status_text(wait_for(tracer)));
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	arguments = argv;
	if (argc > 1)
		return 8;
	child_of("fork", forks, PTRACE_O_TRACEFORK, 0);
	child_of("fork", forks, PTRACE_O_TRACEFORK, 1);
	child_of("vfork", vforks, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE, 0);
	child_of("clone", clones, PTRACE_O_TRACECLONE, 0);
	child_of("clone", clones, PTRACE_O_TRACECLONE, 1);
	child_of("no event", forks, PTRACE_O_TRACECLONE, 0);
	programs();
	ends();
	filters();
	threads();
	program_of_thread();
	waiting();
	notices();
	foreign();
	return 0;
}
