// Shared by the programs about ptrace: making a tracee, and printing where it stops. A
// tracee prints nothing by itself.
#ifndef CONFORMANCE_TRACER_H
#define CONFORMANCE_TRACER_H

#include "conformance.h"

#include <elf.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

// The raw call: libc's returns the words that it reads as its result.
static inline long trace(long request, pid_t pid, unsigned long addr, void *data)
{
	return syscall(SYS_ptrace, request, pid, addr, data);
}

#define DATA(n) ((void *)(long)(n))

// traced makes a child that its parent traces and that calls f when it is continued.
static inline pid_t traced(int (*f)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(trace(PTRACE_TRACEME, 0, 0, NULL) == 0);
		no_core();
		raise(SIGSTOP);
		_exit(f());
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	return pid;
}

static inline const char *signal_name(int n)
{
	const char *name = n >= SIGRTMIN ? "a real-time signal" : sigabbrev_np(n);
	return name ? name : "none";
}

static inline const char *event_name(int event)
{
	switch (event) {
	case PTRACE_EVENT_FORK: return "FORK";
	case PTRACE_EVENT_VFORK: return "VFORK";
	case PTRACE_EVENT_CLONE: return "CLONE";
	case PTRACE_EVENT_EXEC: return "EXEC";
	case PTRACE_EVENT_VFORK_DONE: return "VFORK_DONE";
	case PTRACE_EVENT_EXIT: return "EXIT";
	case PTRACE_EVENT_SECCOMP: return "SECCOMP";
	case PTRACE_EVENT_STOP: return "STOP";
	}
	return "unknown";
}

// stop_text describes a wait status of a tracee.
static inline const char *stop_text(int status)
{
	static char text[96];
	if (!WIFSTOPPED(status))
		return status_text(status);
	int n = WSTOPSIG(status) & 0x7f;
	int length = snprintf(text, sizeof text, "stop %s", signal_name(n));
	if (WSTOPSIG(status) & 0x80)
		length += snprintf(text + length, sizeof text - length, " in a call");
	if (status >> 16)
		snprintf(text + length, sizeof text - length, " event %s", event_name(status >> 16));
	return text;
}

// await waits for the tracee's next stop or end and prints it.
static inline int await(pid_t pid)
{
	int status;
	pid_t r;
	while ((r = waitpid(pid, &status, __WALL)) == -1 && errno == EINTR)
		;
	CHECK(r == pid);
	printf("%s\n", stop_text(status));
	return status;
}

static inline int let_go(long request, pid_t pid, long signal)
{
	CHECK(trace(request, pid, 0, DATA(signal)) == 0);
	return await(pid);
}

static inline struct user_regs_struct registers(pid_t pid)
{
	struct user_regs_struct r;
	CHECK(trace(PTRACE_GETREGS, pid, 0, &r) == 0);
	return r;
}

static inline void set_registers(pid_t pid, struct user_regs_struct r)
{
	CHECK(trace(PTRACE_SETREGS, pid, 0, &r) == 0);
}

// show_info prints the siginfo of the tracee's stop; of ids only whether they are its own or
// the tracer's.
static inline void show_info(pid_t pid)
{
	siginfo_t info;
	memset(&info, 0, sizeof info);
	if (trace(PTRACE_GETSIGINFO, pid, 0, &info) != 0) {
		printf("no siginfo: %s\n", errname(errno));
		return;
	}
	const char *from = info.si_pid == pid ? "itself" : info.si_pid == getpid() ? "the tracer" : info.si_pid == 0 ? "nobody" : "another";
	if (info.si_code > 0 && info.si_code < 0x80 && info.si_signo != SIGCHLD)
		from = "a fault";
	printf("signal %s code %#x from %s\n", signal_name(info.si_signo), info.si_code, from);
}

static inline unsigned long message(pid_t pid)
{
	unsigned long m = 0;
	CHECK(trace(PTRACE_GETEVENTMSG, pid, 0, &m) == 0);
	return m;
}

// state is the state letter of /proc/PID/stat.
static inline char state(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (read_file(path, text, sizeof text) <= 0)
		return '-';
	return strrchr(text, ')')[2];
}

static inline void until_state(pid_t pid, char wanted)
{
	while (state(pid) != wanted)
		nap();
}

#endif
