// How much a pipe holds: default size, F_SETPIPE_SZ up and down, atomic and partial non-blocking writes.
#include "conformance.h"

static char buf[1 << 20];

static long fill(int fd, size_t piece)
{
	long total = 0;
	ssize_t r;
	while ((r = write(fd, buf, piece)) > 0)
		total += r;
	CHECK(errno == EAGAIN);
	return total;
}

static void drain(int fd)
{
	while (read(fd, buf, sizeof buf) > 0)
		;
	CHECK(errno == EAGAIN);
}

int main(void)
{
	int p[2];
	CHECK(pipe2(p, O_NONBLOCK) == 0);
	SHOW(fcntl(p[0], F_GETPIPE_SZ));
	SHOW(fill(p[1], 4096));
	drain(p[0]);
	SHOW(fill(p[1], 1000000));
	drain(p[0]);
	// Small writes share pages.
	SHOW(fill(p[1], 16));
	SHOW(read(p[0], buf, 100));
	// A write of at most PIPE_BUF goes whole or not at all; a longer one in part.
	SHOW(write(p[1], buf, 4096));
	SHOW(write(p[1], buf, 1) == 1 || errno == EAGAIN);
	SHOW(read(p[0], buf, 8192));
	SHOW(write(p[1], buf, 4096));
	drain(p[0]);
	SHOW(fcntl(p[0], F_SETPIPE_SZ, 4096));
	SHOW(fill(p[1], 4096));
	SHOW(write(p[1], buf, 4096));
	drain(p[0]);
	SHOW(write(p[1], buf, 10000));
	drain(p[0]);
	SHOW(fcntl(p[1], F_SETPIPE_SZ, 10000));
	SHOW(fcntl(p[1], F_GETPIPE_SZ));
	SHOW(fill(p[1], 4096));
	SHOW(fcntl(p[1], F_SETPIPE_SZ, 4096));
	drain(p[0]);
	SHOW(fcntl(p[1], F_SETPIPE_SZ, 0));
	SHOW(fcntl(p[1], F_SETPIPE_SZ, 1 << 20));
	SHOW(fill(p[1], 65536));
	SHOW(fcntl(open("/dev/null", O_RDONLY), F_GETPIPE_SZ));
	// A read takes all that the pipe has.
	SHOW(read(p[0], buf, 1 << 20));
	return 0;
}
