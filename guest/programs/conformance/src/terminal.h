// Pseudo-terminals: pairs, input and output.
#ifndef TERMINAL_H
#define TERMINAL_H

#include "conformance.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

static int master_fd, slave_fd;

// open_pair opens both ends, which do not block.
static inline void open_pair(void)
{
	master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	CHECK(master_fd >= 0 && grantpt(master_fd) == 0 && unlockpt(master_fd) == 0);
	slave_fd = open(ptsname(master_fd), O_RDWR | O_NOCTTY | O_NONBLOCK);
	CHECK(slave_fd >= 0);
}

static inline void close_pair(void)
{
	CHECK(close(slave_fd) == 0 && close(master_fd) == 0);
}

// quote prints bytes so that all of them can be seen.
static inline void quote(const char *b, ssize_t n)
{
	putchar('"');
	for (ssize_t i = 0; i < n; i++) {
		unsigned char c = b[i];
		if (c == '\n')
			printf("\\n");
		else if (c == '\r')
			printf("\\r");
		else if (c == '\b')
			printf("\\b");
		else if (c == '\t')
			printf("\\t");
		else if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			printf("\\x%02x", c);
		else
			putchar(c);
	}
	putchar('"');
}

// drain_slave prints all input that the slave can read, read by read, or as one in
// raw mode. When the last read finds nothing, all input has been processed.
static inline void drain_slave(int whole)
{
	static char all[65536];
	ssize_t total = 0, n;
	char b[8192];
	printf(" reads");
	while ((n = read(slave_fd, b, sizeof b)) >= 0) {
		if (whole) {
			CHECK(total + n < (ssize_t)sizeof all);
			memcpy(all + total, b, n);
			total += n;
			if (n == 0)
				break;
			continue;
		}
		putchar(' ');
		quote(b, n);
	}
	if (whole) {
		putchar(' ');
		quote(all, total);
	}
	if (n < 0 && errno != EAGAIN)
		printf(" %s", errname(errno));
}

// drain_master prints all output.
static inline void drain_master(void)
{
	static char all[65536];
	ssize_t total = 0, n;
	while ((n = read(master_fd, all + total, sizeof all - total)) > 0)
		total += n;
	printf(" shows ");
	quote(all, total);
	if (n < 0 && errno != EAGAIN)
		printf(" %s", errname(errno));
	printf("\n");
}

static inline void put_bytes(int fd, const char *text, size_t n)
{
	ssize_t r = write(fd, text, n);
	if (r != (ssize_t)n)
		printf(" (wrote %zd: %s)", r, r < 0 ? errname(errno) : "");
}

// type writes to the master and prints the slave's input and the master's output.
static inline void type_bytes(const char *text, size_t n, int whole)
{
	quote(text, n);
	put_bytes(master_fd, text, n);
	drain_slave(whole);
	drain_master();
}

#define TYPE(text) type_bytes(text, sizeof(text) - 1, 0)
#define TYPE_RAW(text) type_bytes(text, sizeof(text) - 1, 1)

static inline struct termios get_termios(int fd)
{
	struct termios t;
	CHECK(tcgetattr(fd, &t) == 0);
	return t;
}

static inline void set_flags(tcflag_t iflag, tcflag_t oflag, tcflag_t lflag)
{
	struct termios t = get_termios(slave_fd);
	t.c_iflag = iflag;
	t.c_oflag = oflag;
	t.c_lflag = lflag;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
}

#endif
