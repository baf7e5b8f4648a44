// File leases: conditions for a lease, breaking by open, truncate and exec, the signals that holders get, and their end.
#include "conformance.h"

#include <poll.h>

static const char *lease_name(int kind)
{
	return kind == F_RDLCK ? "read" : kind == F_WRLCK ? "write" : kind == F_UNLCK ? "none" : "?";
}

static void show_lease(const char *what, int fd)
{
	printf("%s: %s\n", what, lease_name(fcntl(fd, F_GETLEASE)));
}

static volatile sig_atomic_t signals;
static volatile int seen_signal, seen_code, seen_fd;
static volatile long seen_band;

static void on_break(int sig, siginfo_t *i, void *u)
{
	(void)u;
	signals++;
	seen_signal = sig;
	seen_code = i->si_code;
	seen_fd = i->si_code == POLL_MSG || i->si_code == -5 ? i->si_fd : -1;
	seen_band = i->si_code == POLL_MSG || i->si_code == -5 ? i->si_band : -1;
}

static void show_signals(int fd)
{
	printf("%d signals, last %s, code %d, descriptor %s, band %#lx\n", (int)signals,
	       seen_signal >= SIGRTMIN ? "real-time" : seen_signal ? sigabbrev_np(seen_signal) : "none", seen_code,
	       seen_fd == fd ? "of the lease" : seen_fd == -1 ? "unknown" : "another", seen_band);
	signals = seen_signal = seen_code = 0;
	seen_fd = -1;
	seen_band = 0;
}

static void conditions(void)
{
	write_file("f", "text");
	int r = open("f", O_RDONLY), w = open("f", O_RDWR), p = open("f", O_PATH);
	SHOW(fcntl(r, F_GETLEASE));
	SHOW(fcntl(r, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(r, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(w, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(w, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(r, F_SETLEASE, 3));
	SHOW(fcntl(r, F_SETLEASE, -1));
	SHOW(fcntl(p, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(p, F_GETLEASE));
	SHOW(fcntl(99, F_GETLEASE));
	CHECK(close(w) == 0);
	SHOW(fcntl(r, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(r, F_SETLEASE, F_RDLCK));
	show_lease("read lease", r);
	int r2 = open("f", O_RDONLY);
	CHECK(r2 >= 0);
	show_lease("another description", r2);
	SHOW(fcntl(r, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(r2, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(r2, F_SETLEASE, F_UNLCK));
	CHECK(close(r2) == 0);
	SHOW(fcntl(r, F_SETLEASE, F_WRLCK));
	show_lease("upgraded", r);
	SHOW(fcntl(r, F_SETLEASE, F_RDLCK));
	show_lease("downgraded", r);
	SHOW(fcntl(r, F_SETLEASE, F_UNLCK));
	show_lease("removed", r);
	CHECK(close(r) == 0);
	w = open("f", O_RDWR);
	SHOW(fcntl(w, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(w, F_SETLEASE, F_WRLCK));
	show_lease("of a description that writes", w);
	SHOW(fcntl(w, F_SETLEASE, F_RDLCK));
	int d = dup(w);
	show_lease("dup", d);
	CHECK(close(w) == 0);
	show_lease("one closed", d);
	CHECK(close(d) == 0);
	int ends[2], dir = open(".", O_RDONLY);
	CHECK(pipe(ends) == 0);
	SHOW(fcntl(dir, F_SETLEASE, F_RDLCK) == -1);
	SHOW(fcntl(ends[0], F_SETLEASE, F_RDLCK));
	SHOW(fcntl(ends[0], F_GETLEASE));
	CHECK(close(p) == 0 && close(dir) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

// A lease on another user's file fails without CAP_LEASE, before the file's type is checked.
static void others(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(geteuid() != 0 || setresuid(12345, 12345, 12345) == 0);
		int f = open("/etc/passwd", O_RDONLY), d = open("/dev/null", O_RDONLY);
		CHECK(f >= 0 && d >= 0);
		SHOW(fcntl(f, F_SETLEASE, F_RDLCK));
		SHOW(fcntl(f, F_SETLEASE, F_UNLCK));
		SHOW(fcntl(f, F_SETLEASE, 5));
		SHOW(fcntl(d, F_SETLEASE, F_RDLCK));
		SHOW(fcntl(f, F_GETLEASE));
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
}

static void owners(void)
{
	int f = open("f", O_RDONLY);
	struct f_owner_ex o;
	SHOW(fcntl(f, F_GETOWN));
	SHOW(fcntl(f, F_SETLEASE, F_WRLCK));
	printf("owner is the caller: %d\n", fcntl(f, F_GETOWN) == getpid());
	CHECK(fcntl(f, F_GETOWN_EX, &o) == 0);
	printf("a process: %d\n", o.type == F_OWNER_PID);
	SHOW(fcntl(f, F_SETSIG, SIGUSR1));
	SHOW(fcntl(f, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(f, F_GETOWN));
	SHOW(fcntl(f, F_GETSIG));
	SHOW(fcntl(f, F_SETOWN, 99999999));
	SHOW(fcntl(f, F_SETOWN, (int)0x80000000));
	SHOW(fcntl(f, F_SETOWN, -getpgrp()));
	SHOW(fcntl(f, F_SETLEASE, F_RDLCK));
	printf("the owner stays: %d\n", fcntl(f, F_GETOWN) == -getpgrp());
	o = (struct f_owner_ex){F_OWNER_TID, gettid()};
	SHOW(fcntl(f, F_SETOWN_EX, &o));
	o = (struct f_owner_ex){7, 0};
	SHOW(fcntl(f, F_GETOWN_EX, &o));
	printf("a thread: %d\n", o.type == F_OWNER_TID && o.pid == gettid());
	o.type = 3;
	SHOW(fcntl(f, F_SETOWN_EX, &o));
	CHECK(close(f) == 0);
}

// The same process opens the file with O_NONBLOCK.
static void nonblocking(void)
{
	on_siginfo(SIGIO, on_break, SA_RESTART);
	on_siginfo(SIGUSR1, on_break, SA_RESTART);
	on_siginfo(SIGCHLD, on_break, SA_RESTART);
	on_siginfo(SIGRTMIN + 1, on_break, SA_RESTART);
	int f = open("f", O_RDONLY);
	CHECK(fcntl(f, F_SETLEASE, F_RDLCK) == 0);
	int g = open("f", O_RDONLY | O_NONBLOCK);
	SHOW(g >= 0);
	show_signals(f);
	CHECK(close(g) == 0);
	g = open("f", O_RDONLY | O_TRUNC | O_NONBLOCK);
	printf("O_RDONLY and O_TRUNC: %d\n", g >= 0);
	show_signals(f);
	CHECK(g == -1 || close(g) == 0);
	SHOW(open("f", O_WRONLY | O_NONBLOCK));
	show_signals(f);
	show_lease("being broken", f);
	SHOW(open("f", O_WRONLY | O_NONBLOCK));
	show_signals(f);
	g = open("f", O_RDONLY);
	SHOW(fcntl(g, F_SETLEASE, F_RDLCK));
	CHECK(close(g) == 0);
	SHOW(fcntl(f, F_SETLEASE, F_RDLCK));
	show_lease("still being broken", f);
	SHOW(fcntl(f, F_SETLEASE, F_UNLCK));
	g = open("f", O_WRONLY | O_NONBLOCK);
	SHOW(g >= 0);
	CHECK(close(g) == 0);

	int sigs[] = {0, SIGUSR1, SIGCHLD, SIGRTMIN + 1, SIGIO};
	for (int n = 0; n < LEN(sigs); n++) {
		CHECK(fcntl(f, F_SETLEASE, F_WRLCK) == 0);
		CHECK(fcntl(f, F_SETSIG, sigs[n]) == 0);
		SHOW(open("f", O_RDONLY | O_NONBLOCK));
		show_signals(f);
		show_lease("reader came", f);
		SHOW(open("f", O_RDONLY | O_NONBLOCK));
		SHOW(open("f", O_WRONLY | O_TRUNC | O_NONBLOCK));
		show_signals(f);
		show_lease("writer came", f);
		CHECK(fcntl(f, F_SETLEASE, F_UNLCK) == 0);
	}
	CHECK(close(f) == 0);
	char text[20];
	read_file("f", text, sizeof text);
	printf("content: \"%s\"\n", text);
	write_file("f", "text");

	// The si_fd of the signal is the descriptor of the last F_SETLEASE.
	f = open("f", O_RDONLY);
	int d = dup(f);
	CHECK(fcntl(f, F_SETLEASE, F_WRLCK) == 0);
	CHECK(fcntl(f, F_SETSIG, SIGRTMIN + 1) == 0);
	CHECK(fcntl(d, F_SETLEASE, F_WRLCK) == 0);
	SHOW(open("f", O_RDONLY | O_NONBLOCK));
	show_signals(d);
	CHECK(close(d) == 0);
	show_lease("dup closed", f);
	CHECK(close(f) == 0);

	// Several leases are broken at once.
	f = open("f", O_RDONLY);
	g = open("f", O_RDONLY);
	CHECK(fcntl(f, F_SETLEASE, F_RDLCK) == 0 && fcntl(g, F_SETLEASE, F_RDLCK) == 0);
	SHOW(fcntl(f, F_SETLEASE, F_WRLCK));
	CHECK(fcntl(f, F_SETSIG, SIGRTMIN + 1) == 0 && fcntl(g, F_SETSIG, SIGRTMIN + 1) == 0);
	SHOW(open("f", O_RDWR | O_NONBLOCK));
	show_signals(g);
	CHECK(close(f) == 0);
	SHOW(open("f", O_RDWR | O_NONBLOCK));
	show_signals(g);
	CHECK(close(g) == 0);
	g = open("f", O_RDWR | O_NONBLOCK);
	SHOW(g >= 0);
	CHECK(close(g) == 0);

	// Calls that do not open the file break no lease.
	f = open("f", O_RDWR);
	CHECK(fcntl(f, F_SETLEASE, F_WRLCK) == 0);
	struct stat st;
	SHOW(stat("f", &st));
	SHOW(chmod("f", 0700));
	SHOW(rename("f", "g"));
	SHOW(link("g", "f"));
	SHOW(unlink("g"));
	SHOW(ftruncate(f, 3));
	int p = open("f", O_PATH);
	SHOW(p >= 0);
	SHOW(close(p));
	show_signals(f);
	show_lease("after these", f);
	CHECK(close(f) == 0);
}

static int lease_fd;

static void release(int sig)
{
	(void)sig;
	signals++;
	CHECK(fcntl(lease_fd, F_SETLEASE, F_UNLCK) == 0);
}

static void downgrade(int sig)
{
	(void)sig;
	signals++;
	CHECK(fcntl(lease_fd, F_SETLEASE, F_RDLCK) == 0);
}

static void nothing(int sig)
{
	(void)sig;
	signals++;
}

// The process that waits is the holder: its handler runs and the call is made again.
static void own_break(void)
{
	lease_fd = open("f", O_RDONLY);
	CHECK(fcntl(lease_fd, F_SETLEASE, F_WRLCK) == 0);
	on_signal(SIGIO, release, SA_RESTART);
	int g = open("f", O_WRONLY);
	printf("own lease released in the handler: %d, signals %d\n", g >= 0, (int)signals);
	CHECK(close(g) == 0);
	CHECK(fcntl(lease_fd, F_SETLEASE, F_WRLCK) == 0);
	on_signal(SIGIO, downgrade, SA_RESTART);
	g = open("f", O_RDONLY);
	printf("own lease downgraded in the handler: %d, signals %d\n", g >= 0, (int)signals);
	show_lease("downgraded", lease_fd);
	CHECK(close(g) == 0);
	on_signal(SIGIO, nothing, 0);
	SHOW(open("f", O_WRONLY));
	printf("signals %d\n", (int)signals);
	on_signal(SIGIO, release, 0);
	CHECK(fcntl(lease_fd, F_SETLEASE, F_UNLCK) == 0);
	CHECK(fcntl(lease_fd, F_SETLEASE, F_RDLCK) == 0);
	SHOW(truncate("f", 2));
	printf("signals %d\n", (int)signals);
	show_lease("released", lease_fd);
	CHECK(close(lease_fd) == 0);
	signals = 0;
}

// A child opens, truncates or executes the file; the parent gives up its lease.
static void other_process(const char *what, int kind, int next, int flags)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	int f = open("f", O_RDONLY);
	int to_child[2];
	char c;
	CHECK(pipe(to_child) == 0);
	CHECK(fcntl(f, F_SETLEASE, kind) == 0);
	CHECK(fcntl(f, F_SETSIG, SIGRTMIN + 1) == 0);
	fcntl(f, F_SETFD, FD_CLOEXEC);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(close(to_child[1]) == 0 && close(f) == 0);
		if (flags == -1)
			_exit(truncate("f", 1) == 0 ? 10 : 1);
		if (flags == -2) {
			execl("./f", "f", (char *)NULL);
			_exit(1);
		}
		int g = open("f", flags);
		_exit(g < 0 ? 1 : read(to_child[0], &c, 1) == 1 ? 11 : 12);
	}
	siginfo_t i;
	struct timespec long_time = {600, 0};
	CHECK(sigtimedwait(&set, &i, &long_time) == SIGRTMIN + 1);
	printf("%s: code %d, descriptor %d\n", what, i.si_code, i.si_fd == f);
	show_lease("  while it waits", f);
	struct timespec moment = {0, 20 * MSEC};
	nanosleep(&moment, NULL);
	printf("  child waits: %d\n", waitpid(pid, NULL, WNOHANG) == 0);
	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
		// A process that waits to write counts as a writer.
		int r = open("f", O_RDONLY | O_NONBLOCK);
		printf("  reader: %d\n", r >= 0);
		if (r >= 0) {
			SHOW(fcntl(r, F_SETLEASE, F_RDLCK));
			CHECK(close(r) == 0);
		}
	}
	SHOW(next == -1 ? close(f) : fcntl(f, F_SETLEASE, next));
	CHECK(write(to_child[1], "x", 1) == 1);
	int status = wait_for(pid);
	printf("  %s\n", status_text(status));
	if (next != -1) {
		show_lease("  after it", f);
		CHECK(close(f) == 0);
	}
	CHECK(close(to_child[0]) == 0 && close(to_child[1]) == 0);
	CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

// A signal that ends the wait of an opener.
static void interrupted(void)
{
	on_signal(SIGIO, SIG_IGN, 0);
	int f = open("f", O_RDONLY), ends[2];
	CHECK(pipe(ends) == 0);
	CHECK(fcntl(f, F_SETLEASE, F_WRLCK) == 0);
	for (int kill_it = 0; kill_it < 2; kill_it++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			on_signal(SIGUSR2, kill_it ? SIG_DFL : nothing, 0);
			CHECK(close(f) == 0);
			CHECK(write(ends[1], "x", 1) == 1);
			int g = open("f", O_WRONLY);
			_exit(g == -1 && errno == EINTR ? 20 : 21);
		}
		char c;
		CHECK(read(ends[0], &c, 1) == 1);
		struct timespec moment = {0, 50 * MSEC};
		do
			nanosleep(&moment, NULL);
		while (fcntl(f, F_GETLEASE) != F_UNLCK);
		nanosleep(&moment, NULL);
		CHECK(kill(pid, SIGUSR2) == 0);
		printf("opener: %s\n", status_text(wait_for(pid)));
		show_lease("lease", f);
	}
	// The interrupted opener no longer counts as a writer.
	CHECK(fcntl(f, F_SETLEASE, F_UNLCK) == 0);
	SHOW(fcntl(f, F_SETLEASE, F_WRLCK));
	CHECK(close(f) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

// A lease lives as long as any descriptor of the description, also in a child.
static void inherited(void)
{
	int f = open("f", O_RDONLY), ends[2];
	CHECK(pipe(ends) == 0);
	CHECK(fcntl(f, F_SETLEASE, F_RDLCK) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char c;
		CHECK(close(ends[1]) == 0);
		CHECK(read(ends[0], &c, 1) == 0);
		show_lease("child", f);
		SHOW(fcntl(f, F_SETLEASE, F_UNLCK));
		_exit(0);
	}
	CHECK(close(ends[1]) == 0);
	CHECK(wait_for(pid) == 0);
	show_lease("parent", f);
	CHECK(close(ends[0]) == 0 && close(f) == 0);
}

int main(void)
{
	char text[20];
	conditions();
	others();
	owners();
	nonblocking();
	own_break();
	other_process("read lease, writer", F_RDLCK, F_UNLCK, O_WRONLY);
	other_process("read lease, writer, closed", F_RDLCK, -1, O_WRONLY);
	other_process("write lease, reader, downgraded", F_WRLCK, F_RDLCK, O_RDONLY);
	other_process("write lease, reader, removed", F_WRLCK, F_UNLCK, O_RDONLY);
	other_process("write lease, writer", F_WRLCK, F_UNLCK, O_RDWR);
	other_process("read lease, truncate", F_RDLCK, F_UNLCK, -1);
	read_file("f", text, sizeof text);
	printf("content: \"%s\"\n", text);
	other_process("write lease, O_TRUNC", F_WRLCK, F_UNLCK, O_WRONLY | O_TRUNC);
	read_file("f", text, sizeof text);
	printf("content: \"%s\"\n", text);
	write_file("f", "#!/bin/true\n");
	CHECK(chmod("f", 0755) == 0);
	other_process("write lease, exec", F_WRLCK, F_RDLCK, -2);
	interrupted();
	inherited();
	CHECK(read_file("/proc/sys/fs/lease-break-time", text, sizeof text) > 0);
	printf("%s", text);
	CHECK(read_file("/proc/sys/fs/leases-enable", text, sizeof text) > 0);
	printf("%s", text);
	return 0;
}
