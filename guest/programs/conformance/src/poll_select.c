// poll, ppoll, select and pselect: all kinds of descriptors, time-outs, sets and counts, signal masks swapped, refusals.
#include "conformance.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

static volatile sig_atomic_t hits;

static void handler(int sig)
{
	(void)sig;
	hits++;
}

static void *late_writer(void *arg)
{
	nap();
	CHECK(write((int)(intptr_t)arg, "x", 1) == 1);
	return NULL;
}

int main(void)
{
	int a[2], b[2], pair[2];
	char c;
	CHECK(pipe(a) == 0 && pipe(b) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	write_file("file", "x");
	int file = open("file", O_RDWR);
	CHECK(write(b[1], "x", 1) == 1 && close(b[1]) == 0);
	struct pollfd p[] = {
		{.fd = a[0], .events = POLLIN}, {.fd = a[1], .events = POLLOUT}, {.fd = b[0], .events = POLLIN},
		{.fd = -1, .events = POLLIN},   {.fd = 0x7777, .events = POLLIN}, {.fd = file, .events = POLLIN | POLLOUT},
		{.fd = pair[0], .events = POLLIN | POLLOUT}, {.fd = b[0], .events = 0}, {.fd = a[1], .events = POLLIN},
	};
	SHOW(poll(p, LEN(p), 0));
	for (int i = 0; i < LEN(p); i++)
		printf("%d:%s%s%s%s\n", i, p[i].revents & POLLIN ? " IN" : "", p[i].revents & POLLOUT ? " OUT" : "",
		       p[i].revents & POLLHUP ? " HUP" : "", p[i].revents & POLLNVAL ? " NVAL" : "");
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(poll(p, 1, 2));
	SHOW(poll(NULL, 0, 2));
	SHOW(ppoll(p, 1, &(struct timespec){0, 2 * MSEC}, NULL));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 6 * MSEC);
	SHOW(ppoll(p, 1, &(struct timespec){0, SEC}, NULL));
	SHOW(ppoll(p, 1, &(struct timespec){-1, 0}, NULL));
	volatile nfds_t many = 0xffffffff;
	SHOW(poll(p, many, 0));
	pthread_t t = start(late_writer, (void *)(intptr_t)a[1]);
	SHOW(poll(p, 1, -1));
	finish(t);
	CHECK(read(a[0], &c, 1) == 1);

	fd_set r, w, e;
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&e);
	FD_SET(a[0], &r), FD_SET(b[0], &r), FD_SET(file, &r), FD_SET(pair[0], &r);
	FD_SET(a[1], &w), FD_SET(file, &w), FD_SET(pair[0], &w);
	FD_SET(a[0], &e), FD_SET(pair[0], &e);
	SHOW(select(20, &r, &w, &e, &(struct timeval){0, 0}));
	printf("read %d %d %d %d, write %d %d %d, except %d\n", FD_ISSET(a[0], &r), FD_ISSET(b[0], &r), FD_ISSET(file, &r),
	       FD_ISSET(pair[0], &r), FD_ISSET(a[1], &w) != 0, FD_ISSET(file, &w) != 0, FD_ISSET(pair[0], &w) != 0,
	       FD_ISSET(pair[0], &e) != 0);
	FD_ZERO(&r);
	FD_SET(a[0], &r);
	struct timeval tv = {0, 2000};
	begin = now(CLOCK_MONOTONIC);
	SHOW(select(a[0] + 1, &r, NULL, NULL, &tv));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 2 * MSEC);
	printf("set empty %d, time used up %d\n", !FD_ISSET(a[0], &r), tv.tv_sec == 0 && tv.tv_usec == 0);
	// Descriptors at or above the first argument are ignored.
	FD_ZERO(&r);
	FD_SET(b[0], &r);
	SHOW(select(b[0], &r, NULL, NULL, &(struct timeval){0, 0}));
	FD_ZERO(&r);
	FD_SET(500, &r);
	SHOW(select(501, &r, NULL, NULL, &(struct timeval){0, 0}));
	SHOW(select(-1, NULL, NULL, NULL, &(struct timeval){0, 0}));
	SHOW(select(0, NULL, NULL, NULL, &(struct timeval){-1, 0}));
	SHOW(pselect(0, NULL, NULL, NULL, &(struct timespec){0, SEC}, NULL));
	FD_ZERO(&r);
	FD_SET(a[0], &r);
	t = start(late_writer, (void *)(intptr_t)a[1]);
	SHOW(select(a[0] + 1, &r, NULL, NULL, NULL));
	finish(t);
	CHECK(read(a[0], &c, 1) == 1);

	// A pending signal that the call's mask unblocks ends the call; a ready
	// descriptor takes precedence.
	sigset_t block, none;
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	on_signal(SIGUSR1, handler, SA_RESTART);
	CHECK(sigprocmask(SIG_BLOCK, &block, NULL) == 0);
	raise(SIGUSR1);
	SHOW(ppoll(p, 1, NULL, &none));
	raise(SIGUSR1);
	SHOW(pselect(0, NULL, NULL, NULL, NULL, &none));
	printf("hits %d\n", (int)hits);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &none) == 0);
	printf("blocked again %d\n", sigismember(&none, SIGUSR1));
	CHECK(poll(p, 1, 0) == 0);
	SHOW(ppoll(p, 1, &(struct timespec){0, 0}, &block));
	return 0;
}
