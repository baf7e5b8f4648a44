// seccomp filters: each action, combined results of several filters, arguments, inheritance by threads, children and programs, and the checks of filters.
#include "seccomp.h"

#include <ucontext.h>

static void errors(void)
{
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EPROTO, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(install_for(SYS_getpgrp, SECCOMP_RET_ERRNO | 0xffff, 0));
	long r = syscall(SYS_getpgrp);
	printf("%ld %d\n", r, errno);
	SHOW(install_for(SYS_getuid, SECCOMP_RET_ERRNO, 0));
	SHOW(syscall(SYS_getuid));
	SHOW(install_for(SYS_geteuid, SECCOMP_RET_LOG, 0));
	CHECK(syscall(SYS_geteuid) >= 0);
	SHOW(install_for(SYS_getgid, SECCOMP_RET_TRACE | 5, 0));
	SHOW(syscall(SYS_getgid));
	SHOW(install_for(1008, SECCOMP_RET_ERRNO | EDOM, 0));
	SHOW(syscall(1008));
	SHOW(install_for(-1, SECCOMP_RET_ERRNO | ERANGE, 0));
	SHOW(syscall(-1));
}

// The strictest action of all filters is taken; of equal actions the newest filter's.
static void several(void)
{
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EPROTO, 0));
	SHOW(install_for(SYS_getppid, SECCOMP_RET_TRACE, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EDOM, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(install_for(SYS_getppid, SECCOMP_RET_LOG, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(install_for(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0));
	SHOW(syscall(SYS_getppid));
}

static void show_status(void)
{
	char text[4096], *line;
	CHECK(read_file("/proc/self/status", text, sizeof text) > 0);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strncmp(line, "Seccomp", 7) == 0 || strncmp(line, "NoNewPrivs", 10) == 0)
			printf("%s\n", line);
}

static void arguments(void)
{
	struct sock_filter list[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]) + 4),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	SHOW(install(list, LEN(list), 0));
	SHOW(syscall(SYS_getpriority, SECCOMP_RET_ERRNO | EPROTO, 0, 0, 0, 0, 0L));
	SHOW(syscall(SYS_getpriority, SECCOMP_RET_ERRNO, 0, 0, 0, 0, (unsigned long)EDOM << 32));
	SHOW(syscall(SYS_getpriority, 0, 0, 0, 0, 0, (unsigned long)SECCOMP_RET_KILL_THREAD << 32));
}

static siginfo_t trapped;
static volatile int traps;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	trapped = *info;
	traps++;
	printf("signal %s code %d errno %d number %d arch %x register %lld, at the caller %d\n", sigabbrev_np(sig), info->si_code,
	       info->si_errno, info->si_syscall, info->si_arch, (long long)r[REG_RAX], info->si_call_addr == (void *)r[REG_RIP]);
	r[REG_RAX] = -EXDEV;
}

static void trap(void)
{
	on_siginfo(SIGSYS, on_trap, 0);
	SHOW(install_for(SYS_getppid, SECCOMP_RET_TRAP | 77, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(syscall(SYS_getppid));
	printf("%d\n", traps);
	// Blocked, it kills.
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	SHOW(syscall(SYS_getppid));
}

static void ignored_trap(void)
{
	signal(SIGSYS, SIG_IGN);
	SHOW(install_for(SYS_getppid, SECCOMP_RET_TRAP, 0));
	SHOW(syscall(SYS_getppid));
}

static void kill_process(void)
{
	on_siginfo(SIGSYS, on_trap, 0);
	SHOW(install_for(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0));
	syscall(SYS_getppid);
}

static void kill_only_thread(void)
{
	on_siginfo(SIGSYS, on_trap, 0);
	SHOW(install_for(SYS_getppid, SECCOMP_RET_KILL_THREAD, 0));
	syscall(SYS_getppid);
}

static void unknown_action(void)
{
	SHOW(install_for(SYS_getppid, 0x00010000, 0));
	syscall(SYS_getppid);
}

// The kernel clears the CLONE_CHILD_CLEARTID word of a thread that is killed.
static _Atomic int tid = 1;

static void *dies(void *arg)
{
	(void)arg;
	syscall(SYS_set_tid_address, &tid);
	syscall(SYS_getppid);
	printf("not reached\n");
	return NULL;
}

static void kill_thread(void)
{
	SHOW(install_for(SYS_getppid, SECCOMP_RET_KILL_THREAD, 0));
	start(dies, NULL);
	while (tid != 0)
		syscall(SYS_futex, &tid, 0 /* FUTEX_WAIT */, 1, NULL);
	printf("the thread is dead\n");
}

static void *asks(void *arg)
{
	SHOW(syscall(SYS_getppid));
	return arg;
}

static void inherited(void)
{
	show_status();
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EPROTO, 0));
	SHOW(install_for(SYS_getpgrp, SECCOMP_RET_ERRNO | EDOM, 0));
	show_status();
	SHOW(prctl(PR_GET_SECCOMP));
	finish(start(asks, NULL));
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		SHOW(syscall(SYS_getppid));
		SHOW(syscall(SYS_getpgrp));
		execl("/proc/self/exe", "seccomp_filter", "again", NULL);
		_exit(9);
	}
	printf("%s\n", status_text(wait_for(pid)));
}

static int again(void)
{
	SHOW(syscall(SYS_getppid));
	SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	show_status();
	return 0;
}

static pthread_barrier_t barrier;

static void wait_for_all(void)
{
	int r = pthread_barrier_wait(&barrier);
	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void *follows(void *arg)
{
	if (arg)
		SHOW(install_for(SYS_getpgrp, SECCOMP_RET_ERRNO | EDOM, 0));
	wait_for_all();
	wait_for_all();
	SHOW(syscall(SYS_getppid));
	return NULL;
}

static void synchronized(void)
{
	pthread_barrier_init(&barrier, NULL, 2);
	SHOW(install_for(SYS_getuid, SECCOMP_RET_ERRNO | EDOM, 0));
	pthread_t t = start(follows, NULL);
	wait_for_all();
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EPROTO, SECCOMP_FILTER_FLAG_TSYNC));
	wait_for_all();
	finish(t);
	// A thread with filters of its own cannot be synchronized.
	t = start(follows, (void *)1);
	wait_for_all();
	CHECK(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EDOM, SECCOMP_FILTER_FLAG_TSYNC) > 0);
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EDOM, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH));
	wait_for_all();
	finish(t);
	SHOW(syscall(SYS_getppid));
}

static void without_privileges(void)
{
	// no_new_privileges is set for children: a grandchild cannot undo it.
	SHOW(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static void invalid(void)
{
	struct sock_filter good[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct {
		const char *what;
		struct sock_filter list[3];
	} bad[] = {
		{"no return", {BPF_STMT(BPF_LD | BPF_IMM, 0), BPF_STMT(BPF_LD | BPF_IMM, 0), BPF_STMT(BPF_LD | BPF_IMM, 0)}},
		{"unaligned", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), good[0], good[0]}},
		{"outside", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), good[0], good[0]}},
		{"bytes", {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), good[0], good[0]}},
		{"indirect", {BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), good[0], good[0]}},
		{"ancillary", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF), good[0], good[0]}},
		{"modulo", {BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), good[0], good[0]}},
		{"division by 0", {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), good[0], good[0]}},
		{"far jump", {BPF_STMT(BPF_JMP | BPF_JA, 2), good[0], good[0]}},
		{"far branch", {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2), good[0], good[0]}},
		{"long shift", {BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), good[0], good[0]}},
		{"scratch", {BPF_STMT(BPF_ST, 16), good[0], good[0]}},
		{"unset scratch", {BPF_STMT(BPF_LD | BPF_MEM, 1), good[0], good[0]}},
		{"RET X", {BPF_STMT(BPF_LD | BPF_IMM, 0), good[0], BPF_STMT(BPF_RET | BPF_X, 0)}},
	};
	for (int i = 0; i < LEN(bad); i++) {
		printf("%s: ", bad[i].what);
		SHOW(install(bad[i].list, 3, 0));
	}
	SHOW(install(good, 0, 0));
	SHOW(install(good, 4097, 0));
	SHOW(install(NULL, 1, 0));
	SHOW(seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL));
	SHOW(seccomp(SECCOMP_SET_MODE_FILTER, 64, NULL));
	SHOW(install(good, 1, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_NEW_LISTENER));
	SHOW(install(good, 1, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV));
	SHOW(install(good, 1, SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW));
	SHOW(seccomp(77, 0, NULL));
	SHOW(seccomp(SECCOMP_SET_MODE_STRICT, 1, NULL));
	SHOW(seccomp(SECCOMP_SET_MODE_STRICT, 0, good));
	SHOW(prctl(PR_SET_SECCOMP, 0, NULL));
	SHOW(prctl(PR_SET_SECCOMP, 3, NULL));
	SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	// A process with filters cannot enter strict mode.
	SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, NULL));
	SHOW(prctl(PR_GET_SECCOMP));
}

static void available(void)
{
	static const unsigned actions[] = {
		SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF,
		SECCOMP_RET_TRACE, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW, 1, 0x00010000,
	};
	for (int i = 0; i < LEN(actions); i++) {
		unsigned action = actions[i];
		printf("%#x: ", action);
		SHOW(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action));
	}
	unsigned action = 0;
	SHOW(seccomp(SECCOMP_GET_ACTION_AVAIL, 1, &action));
	SHOW(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, NULL));
	struct seccomp_notif_sizes sizes;
	SHOW(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes));
	printf("%d %d %d\n", sizes.seccomp_notif, sizes.seccomp_notif_resp, sizes.seccomp_data);
	SHOW(seccomp(SECCOMP_GET_NOTIF_SIZES, 1, &sizes));
	SHOW(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, NULL));
}

static void strict(void)
{
	SHOW(prctl(PR_GET_SECCOMP));
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	CHECK(write(1, "written\n", 8) == 8);
	syscall(SYS_exit, 5);
}

static void strict_forbids(void)
{
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	syscall(SYS_getpid);
	write(1, "not reached\n", 12);
}

static void strict_forbids_exit_group(void)
{
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	_exit(3);
}

static void *strict_thread(void *arg)
{
	syscall(SYS_set_tid_address, &tid);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	syscall(SYS_getpid);
	return arg;
}

// In strict mode only the thread dies.
static void strict_in_thread(void)
{
	start(strict_thread, NULL);
	while (tid != 0)
		syscall(SYS_futex, &tid, 0 /* FUTEX_WAIT */, 1, NULL);
	SHOW(prctl(PR_GET_SECCOMP));
}

static int forbidden_user(void)
{
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (getuid() == 0)
			CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
		struct sock_filter good[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
		SHOW(install(good, 1, 0));
		SHOW(install(NULL, 1, 0));
		SHOW(install(good, 0, 0));
		no_new_privileges();
		SHOW(install(good, 1, 0));
		exit(0);
	}
	return wait_for(pid);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return again();
	printf("%s\n", status_text(forbidden_user()));
	in_child("errors", errors);
	in_child("several", several);
	in_child("arguments", arguments);
	in_child("trap", trap);
	in_child("ignored trap", ignored_trap);
	in_child("kill process", kill_process);
	in_child("kill the only thread", kill_only_thread);
	in_child("unknown action", unknown_action);
	in_child("kill thread", kill_thread);
	in_child("inherited", inherited);
	in_child("synchronized", synchronized);
	in_child("no new privileges", without_privileges);
	in_child("invalid", invalid);
	in_child("available", available);
	in_child("strict", strict);
	in_child("strict forbids", strict_forbids);
	in_child("strict forbids exit_group", strict_forbids_exit_group);
	in_child("strict in a thread", strict_in_thread);
	return 0;
}
