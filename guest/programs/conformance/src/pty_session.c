// Terminals that control sessions: TIOCSCTTY, TIOCNOTTY, /dev/tty, foreground groups, hang-ups, /proc/PID/stat.
// link: -lutil
#include "terminal.h"

#include <stdarg.h>
#include <sys/sysmacros.h>

static int report_fd; // where children print, since their standard output is a terminal

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vdprintf(report_fd, format, args);
	va_end(args);
}

#define TELL(call)                                                                      \
	do {                                                                            \
		errno = 0;                                                              \
		long r_ = (long)(call);                                                 \
		r_ == -1 ? say(#call ": %s\n", errname(errno)) : say(#call ": %ld\n", r_); \
	} while (0)

// child runs f in a process with a session of its own.
static void child(const char *what, void (*f)(void))
{
	printf("-- %s\n", what);
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setsid() == getpid());
		f();
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
}

static void show_stat(const char *when)
{
	char text[4096];
	int group, session, tty, foreground;
	CHECK(read_file("/proc/self/stat", text, sizeof text) > 0);
	CHECK(sscanf(strrchr(text, ')') + 2, "%*c %*d %d %d %d %d", &group, &session, &tty, &foreground) == 4);
	say("%s: group %d, session %d, terminal %d, foreground %s\n", when, group == getpid(), session == getpid(),
	    tty == 0 ? 0 : (int)major(tty), foreground == getpgrp() ? "mine" : foreground == -1 ? "none" : "another");
}

static void by_ioctl(void)
{
	open_pair();
	show_stat("without");
	TELL(open("/dev/tty", O_RDWR));
	TELL(tcgetpgrp(slave_fd));
	TELL(tcgetsid(slave_fd));
	TELL(ioctl(slave_fd, TIOCNOTTY));
	TELL(ioctl(slave_fd, TIOCSCTTY, 0));
	show_stat("with");
	TELL(ioctl(slave_fd, TIOCSCTTY, 0));
	TELL(tcgetpgrp(slave_fd) == getpid());
	TELL(tcgetpgrp(master_fd) == getpid());
	TELL(tcgetsid(slave_fd) == getpid());
	TELL(tcgetsid(master_fd) == getpid());
	int tty = open("/dev/tty", O_RDWR);
	TELL(tty >= 0);
	TELL(tcgetpgrp(tty) == getpid());
	struct stat st;
	CHECK(fstat(tty, &st) == 0);
	say("device %d:%d\n", major(st.st_rdev), minor(st.st_rdev));
	CHECK(write(tty, "through /dev/tty\n", 17) == 17);
	char b[64];
	ssize_t n = read(master_fd, b, sizeof b);
	say("%zd: %.*s", n, (int)n - 2, b);
	say("\n");
	int master = master_fd, slave = slave_fd;
	open_pair();
	TELL(ioctl(slave_fd, TIOCSCTTY, 0));
	TELL(tcgetpgrp(slave_fd));
	TELL(tcsetpgrp(slave_fd, getpid()));
	TELL(ioctl(slave_fd, TIOCNOTTY));
	close_pair();
	master_fd = master;
	slave_fd = slave;
	on_signal(SIGHUP, SIG_IGN, 0);
	TELL(ioctl(slave_fd, TIOCNOTTY));
	show_stat("given up");
	TELL(open("/dev/tty", O_RDWR));
	TELL(ioctl(slave_fd, TIOCSCTTY, 0));
	show_stat("again");
}

static void by_open(void)
{
	int m = posix_openpt(O_RDWR), s;
	CHECK(m >= 0 && unlockpt(m) == 0);
	show_stat("a master");
	s = open(ptsname(m), O_RDWR | O_NOCTTY);
	show_stat("O_NOCTTY");
	CHECK(close(s) == 0);
	s = open(ptsname(m), O_WRONLY);
	show_stat("for writing only");
	CHECK(close(s) == 0);
	s = open(ptsname(m), O_RDWR);
	show_stat("opened");
	pid_t pid = fork();
	if (pid == 0) {
		TELL(tcgetsid(s) == getppid());
		TELL(ioctl(s, TIOCSCTTY, 0));
		TELL(open("/dev/tty", O_RDWR) >= 0);
		TELL(ioctl(s, TIOCNOTTY));
		TELL(open("/dev/tty", O_RDWR));
		TELL(setpgid(0, 0));
		TELL(setsid());
		_exit(0);
	}
	say("%s\n", status_text(wait_for(pid)));
	TELL(tcgetsid(s) == getpid());
	pid = fork();
	if (pid == 0) {
		CHECK(setsid() > 0);
		TELL(open("/dev/tty", O_RDWR));
		TELL(ioctl(s, TIOCSCTTY, 0));
		int again = open(ptsname(m), O_RDWR);
		show_stat("another session opens it");
		CHECK(close(again) == 0);
		_exit(0);
	}
	say("%s\n", status_text(wait_for(pid)));
}

static void foreground(void)
{
	open_pair();
	CHECK(ioctl(slave_fd, TIOCSCTTY, 0) == 0);
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		char c;
		CHECK(read(fd[0], &c, 1) == 1);
		_exit(0);
	}
	CHECK(setpgid(pid, pid) == 0);
	TELL(tcsetpgrp(slave_fd, pid));
	TELL(tcgetpgrp(slave_fd) == pid);
	show_stat("in the background");
	on_signal(SIGTTOU, SIG_IGN, 0);
	TELL(tcsetpgrp(slave_fd, getpid()));
	TELL(tcsetpgrp(slave_fd, 1 << 28));
	TELL(tcsetpgrp(slave_fd, -5));
	TELL(tcsetpgrp(slave_fd, getppid()));
	TELL(ioctl(slave_fd, TIOCSPGRP, 8));
	CHECK(tcsetpgrp(slave_fd, pid) == 0);
	CHECK(write(fd[1], "x", 1) == 1);
	wait_for(pid);
	TELL(tcgetpgrp(slave_fd) == pid); // although no process of the group is left
	TELL(tcsetpgrp(slave_fd, getpid()));
}

static volatile sig_atomic_t signals[65];

static void count(int sig) { signals[sig]++; }

static void wait_until(int sig)
{
	while (!signals[sig])
		nap();
}

// a change of the window size signals the foreground.
static void windows(void)
{
	open_pair();
	on_signal(SIGWINCH, count, SA_RESTART);
	struct winsize w = {10, 20, 0, 0};
	CHECK(ioctl(master_fd, TIOCSWINSZ, &w) == 0);
	say("without a session: %d\n", signals[SIGWINCH]);
	CHECK(ioctl(slave_fd, TIOCSCTTY, 0) == 0);
	CHECK(ioctl(master_fd, TIOCSWINSZ, &w) == 0);
	say("the same size: %d\n", signals[SIGWINCH]);
	w.ws_col = 30;
	CHECK(ioctl(master_fd, TIOCSWINSZ, &w) == 0);
	wait_until(SIGWINCH);
	say("another size: %d\n", signals[SIGWINCH]);
}

// the leader gets SIGHUP and SIGCONT when its terminal is hung up.
static void hung_up(void)
{
	open_pair();
	CHECK(ioctl(slave_fd, TIOCSCTTY, 0) == 0);
	on_signal(SIGHUP, count, 0);
	on_signal(SIGCONT, count, 0);
	CHECK(close(master_fd) == 0);
	wait_until(SIGHUP);
	wait_until(SIGCONT);
	say("SIGHUP %d, SIGCONT %d\n", signals[SIGHUP], signals[SIGCONT]);
	show_stat("hung up");
	TELL(open("/dev/tty", O_RDWR));
	TELL(write(slave_fd, "x", 1));
}

// when the leader ends, the foreground gets SIGHUP.
static void leader_ends(void)
{
	open_pair();
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t leader = fork();
	if (leader == 0) {
		CHECK(setsid() > 0 && ioctl(slave_fd, TIOCSCTTY, 0) == 0);
		int ready[2];
		CHECK(pipe(ready) == 0);
		for (int i = 0; i < 2; i++) {
			pid_t pid = fork();
			if (pid == 0) {
				on_signal(SIGHUP, count, 0);
				if (i == 1)
					CHECK(setpgid(0, 0) == 0);
				CHECK(write(ready[1], "x", 1) == 1);
				for (int k = 0; k < (i == 0 ? 100000 : 20) && !signals[SIGHUP]; k++)
					nap();
				char line[64];
				int n = snprintf(line, sizeof line, "%s: SIGHUP %d, terminal %d\n", i == 0 ? "foreground" : "background",
						 signals[SIGHUP], open("/dev/tty", O_RDWR) >= 0);
				// Both report in a fixed order.
				if (i == 1) {
					char c;
					CHECK(read(fd[0], &c, 1) == 1);
				}
				CHECK(write(report_fd, line, n) == n);
				if (i == 0)
					CHECK(write(fd[1], "x", 1) == 1);
				_exit(0);
			}
		}
		char c;
		CHECK(read(ready[0], &c, 1) == 1 && read(ready[0], &c, 1) == 1);
		_exit(7);
	}
	int status = wait_for(leader);
	struct pollfd p = {.fd = master_fd, .events = POLLIN};
	CHECK(close(slave_fd) == 0 && poll(&p, 1, -1) == 1); // until the slave is open nowhere
	printf("-- the leader ended: %s, events %x\n", status_text(status), p.revents);
	CHECK(close(master_fd) == 0);
}

// only privileged processes take a terminal from another session.
static void stolen(void)
{
	open_pair();
	CHECK(ioctl(slave_fd, TIOCSCTTY, 0) == 0);
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(setsid() > 0);
		int r = ioctl(slave_fd, TIOCSCTTY, 1);
		CHECK(r == 0 || errno == EPERM);
		char c = r == 0;
		CHECK(write(fd[1], &c, 1) == 1);
		_exit(0);
	}
	char c;
	CHECK(read(fd[0], &c, 1) == 1);
	wait_for(pid);
	CHECK((open("/dev/tty", O_RDWR) < 0) == c);
	say("a session has the terminal, or another took it\n");
}

int main(void)
{
	on_signal(SIGHUP, SIG_DFL, 0);
	report_fd = dup(1);
	CHECK(report_fd >= 0);
	child("by ioctl", by_ioctl);
	child("by open", by_open);
	child("foreground", foreground);
	child("windows", windows);
	child("hung up", hung_up);
	leader_ends();
	child("stolen", stolen);
	return 0;
}
