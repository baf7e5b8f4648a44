// Job control: signals of keys, SIGTTIN and SIGTTOU, stopped and orphaned groups, jobs as a shell sees them.
// link: -lutil
#include "terminal.h"

// shell starts f as the leader of a session with a terminal, and shows how it ends.
static void shell(const char *what, void (*f)(void))
{
	printf("-- %s\n", what);
	open_pair();
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setsid() > 0 && ioctl(slave_fd, TIOCSCTTY, 0) == 0);
		CHECK(fcntl(slave_fd, F_SETFL, 0) == 0);
		on_signal(SIGTTOU, SIG_IGN, 0);
		f();
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
	close_pair();
}

// job starts f in a group of its own; it begins when the group is set up.
static pid_t job(void (*f)(void), int in_foreground)
{
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char c;
		on_signal(SIGTTOU, SIG_DFL, 0);
		CHECK(close(fd[1]) == 0 && read(fd[0], &c, 1) == 0 && close(fd[0]) == 0);
		f();
		_exit(0);
	}
	CHECK(setpgid(pid, pid) == 0);
	if (in_foreground)
		CHECK(tcsetpgrp(slave_fd, pid) == 0);
	CHECK(close(fd[0]) == 0 && close(fd[1]) == 0);
	return pid;
}

static void show_wait(const char *what, pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid);
	printf("%s: %s\n", what, status_text(status));
}

static void key(char c)
{
	CHECK(write(master_fd, &c, 1) == 1);
}

static void sleeps(void)
{
	for (;;)
		pause();
}

static void keys(void)
{
	const char keys[] = {3, 034, 032};
	no_core();
	for (int i = 0; i < 3; i++) {
		pid_t pid = job(sleeps, 1);
		key(keys[i]);
		show_wait("key", pid);
		if (keys[i] == 032) {
			CHECK(kill(-pid, SIGCONT) == 0);
			show_wait("continued", pid);
			CHECK(kill(-pid, SIGKILL) == 0);
			show_wait("killed", pid);
		}
		CHECK(tcsetpgrp(slave_fd, getpid()) == 0);
	}
	// Every process of the foreground group gets the signal, and no other.
	pid_t background = job(sleeps, 0), first = job(sleeps, 1), second = fork();
	if (second == 0)
		sleeps();
	CHECK(setpgid(second, first) == 0);
	key(3);
	show_wait("first", first);
	show_wait("second", second);
	CHECK(waitpid(background, NULL, WNOHANG) == 0);
	CHECK(kill(background, SIGKILL) == 0);
	show_wait("background", background);
	CHECK(tcsetpgrp(slave_fd, getpid()) == 0);
	SHOW(ioctl(master_fd, TIOCSIG, SIGUSR1));
	first = job(sleeps, 1);
	SHOW(ioctl(master_fd, TIOCSIG, SIGQUIT));
	show_wait("TIOCSIG", first);
}

static void reads(void)
{
	char b[10];
	ssize_t n = read(slave_fd, b, sizeof b);
	if (n < 0)
		printf("read: %s\n", errname(errno));
	else
		printf("read %.*s", (int)n, b);
}

static void reads_ignoring(void)
{
	on_signal(SIGTTIN, SIG_IGN, 0);
	reads();
}

static void reads_blocking(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTTIN);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	reads();
}

static void on_stop(int sig)
{
	printf("handler of SIG%s\n", sigabbrev_np(sig));
	signal(sig, SIG_IGN);
}

static void reads_handling(void)
{
	on_signal(SIGTTIN, on_stop, 0);
	reads();
}

static void reads_restarting(void)
{
	on_signal(SIGTTIN, on_stop, SA_RESTART);
	reads();
}

static void background_reads(void)
{
	pid_t pid = job(reads, 0);
	show_wait("reads in the background", pid);
	CHECK(tcsetpgrp(slave_fd, pid) == 0 && kill(-pid, SIGCONT) == 0);
	CHECK(write(master_fd, "line\n", 5) == 5);
	int status;
	while (waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid && WIFCONTINUED(status))
		;
	printf("in the foreground: %s\n", status_text(status));
	CHECK(tcsetpgrp(slave_fd, getpid()) == 0);
	show_wait("ignores it", job(reads_ignoring, 0));
	show_wait("blocks it", job(reads_blocking, 0));
	show_wait("handles it", job(reads_handling, 0));
	show_wait("restarts", job(reads_restarting, 0));
}

static void writes(void)
{
	ssize_t n = write(slave_fd, "out", 3);
	printf("write: %s\n", n == 3 ? "ok" : errname(errno));
}

static void writes_ignoring(void)
{
	on_signal(SIGTTOU, SIG_IGN, 0);
	writes();
}

static void sets(void)
{
	struct termios t = get_termios(slave_fd);
	printf("tcsetattr: %s\n", tcsetattr(slave_fd, TCSANOW, &t) == 0 ? "ok" : errname(errno));
}

static void flushes(void)
{
	printf("tcflush: %s\n", tcflush(slave_fd, TCIFLUSH) == 0 ? "ok" : errname(errno));
}

static void takes(void)
{
	printf("tcsetpgrp: %s\n", tcsetpgrp(slave_fd, getpgrp()) == 0 ? "ok" : errname(errno));
}

static void sets_ignoring(void)
{
	on_signal(SIGTTOU, SIG_IGN, 0);
	sets();
	takes();
}

static void until_end(const char *what, void (*f)(void))
{
	pid_t pid = job(f, 0);
	show_wait(what, pid);
	CHECK(kill(pid, SIGKILL) == 0);
	int status = wait_for(pid);
	CHECK(WIFSIGNALED(status));
}

static void background_writes(void)
{
	show_wait("writes", job(writes, 0));
	struct termios t = get_termios(slave_fd);
	t.c_lflag |= TOSTOP;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	until_end("writes with TOSTOP", writes);
	show_wait("ignores it", job(writes_ignoring, 0));
	until_end("sets", sets);
	until_end("flushes", flushes);
	until_end("takes the foreground", takes);
	show_wait("sets and takes ignoring it", job(sets_ignoring, 0));
	CHECK(tcsetpgrp(slave_fd, getpid()) == 0);
}

// an orphaned group is not stopped by the terminal, as no shell would continue it.
static void orphan_reads(void)
{
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t parent = fork();
	if (parent == 0) {
		pid_t self = getpid();
		if (fork() == 0) {
			CHECK(setpgid(0, 0) == 0);
			while (getppid() == self)
				nap();
			raise(SIGTSTP); // has no effect
			char b[10];
			ssize_t n = read(slave_fd, b, sizeof b);
			printf("orphan: read %s\n", n < 0 ? errname(errno) : "something");
			struct termios t = get_termios(slave_fd);
			int r = tcsetattr(slave_fd, TCSANOW, &t);
			printf("orphan: tcsetattr %s\n", r < 0 ? errname(errno) : "ok");
			CHECK(write(fd[1], "x", 1) == 1);
			_exit(0);
		}
		_exit(0);
	}
	wait_for(parent);
	char c;
	CHECK(read(fd[0], &c, 1) == 1);
}

static volatile sig_atomic_t hups, conts;

static void on_hup(int sig) { sig == SIGHUP ? hups++ : conts++; }

// a stopped group that becomes an orphan is sent SIGHUP and SIGCONT.
static void orphan_stopped(void)
{
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t parent = fork();
	if (parent == 0) {
		pid_t pid = fork();
		if (pid == 0) {
			CHECK(setpgid(0, 0) == 0);
			on_signal(SIGHUP, on_hup, SA_RESTART);
			on_signal(SIGCONT, on_hup, SA_RESTART);
			raise(SIGTSTP);
			while (!hups || !conts)
				nap();
			printf("stopped orphan: SIGHUP %d, SIGCONT %d\n", hups, conts);
			CHECK(write(fd[1], "x", 1) == 1);
			_exit(0);
		}
		int status;
		CHECK(waitpid(pid, &status, WUNTRACED) == pid);
		printf("child: %s\n", status_text(status));
		_exit(0);
	}
	wait_for(parent);
	char c;
	CHECK(read(fd[0], &c, 1) == 1);
}

int main(void)
{
	shell("keys", keys);
	shell("reads", background_reads);
	shell("writes", background_writes);
	shell("orphans", orphan_reads);
	shell("stopped orphans", orphan_stopped);
	return 0;
}
