// Pipes: order, ends of file, EPIPE with and without SIGPIPE, non-blocking ends, FIONREAD, poll states, zero lengths.
#include "conformance.h"

#include <poll.h>
#include <sys/ioctl.h>

static volatile sig_atomic_t pipes;

static void handler(int sig)
{
	(void)sig;
	pipes++;
}

static void state(const char *what, int r, int w)
{
	struct pollfd p[2] = {{.fd = r, .events = POLLIN}, {.fd = w, .events = POLLOUT}};
	int n = poll(p, 2, 0);
	printf("%s: %d, read%s%s%s, write%s%s%s\n", what, n, p[0].revents & POLLIN ? " IN" : "",
	       p[0].revents & POLLHUP ? " HUP" : "", p[0].revents & POLLNVAL ? " NVAL" : "",
	       p[1].revents & POLLOUT ? " OUT" : "", p[1].revents & POLLERR ? " ERR" : "",
	       p[1].revents & POLLNVAL ? " NVAL" : "");
}

int main(void)
{
	int p[2], n;
	char buf[100] = {0};
	SHOW(pipe(p));
	printf("descriptors %d %d\n", p[0], p[1]);
	state("empty", p[0], p[1]);
	SHOW(write(p[1], "hello ", 6));
	SHOW(write(p[1], "world", 5));
	SHOW(write(p[1], "", 0));
	state("filled", p[0], p[1]);
	SHOW(ioctl(p[0], FIONREAD, &n));
	printf("to read %d\n", n);
	SHOW(read(p[0], buf, 0));
	SHOW(read(p[0], buf, 8));
	printf("%s\n", buf);
	SHOW(read(p[0], buf, 100));
	printf("%.3s\n", buf);
	CHECK(fcntl(p[0], F_SETFL, O_NONBLOCK) == 0);
	SHOW(read(p[0], buf, 1));
	SHOW(read(p[0], buf, 0));
	SHOW(write(p[1], "last", 4));
	CHECK(close(p[1]) == 0);
	state("writer gone, data left", p[0], -1);
	SHOW(read(p[0], buf, 100));
	SHOW(read(p[0], buf, 100));
	state("writer gone", p[0], -1);
	CHECK(close(p[0]) == 0);
	state("closed", p[0], p[1]);

	on_signal(SIGPIPE, handler, 0);
	CHECK(pipe2(p, O_CLOEXEC) == 0);
	SHOW(fcntl(p[0], F_GETFD));
	CHECK(write(p[1], "x", 1) == 1 && close(p[0]) == 0);
	state("reader gone", -1, p[1]);
	SHOW(write(p[1], "x", 1));
	printf("signals %d\n", (int)pipes);
	SHOW(write(p[1], "", 0));
	on_signal(SIGPIPE, SIG_IGN, 0);
	SHOW(write(p[1], "x", 1));
	CHECK(close(p[1]) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		on_signal(SIGPIPE, SIG_DFL, 0);
		CHECK(pipe(p) == 0 && close(p[0]) == 0);
		(void)!write(p[1], "x", 1);
		_exit(0);
	}
	printf("by default: %s\n", status_text(wait_for(pid)));

	// A second writer keeps the pipe open.
	CHECK(pipe(p) == 0);
	int w = dup(p[1]);
	CHECK(close(p[1]) == 0 && write(w, "y", 1) == 1);
	SHOW(read(p[0], buf, 10));
	CHECK(fcntl(p[0], F_SETFL, O_NONBLOCK) == 0);
	SHOW(read(p[0], buf, 10));
	CHECK(close(w) == 0);
	SHOW(read(p[0], buf, 10));
	SHOW(pipe2(p, 0x7777));
	return 0;
}
