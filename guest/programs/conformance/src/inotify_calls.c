// The calls of inotify: masks, flags, errors, small buffers, poll, waiting, overflow, exec, many watches.
#include "inotify.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/time.h>

static void errors(void)
{
	SHOW(inotify_init1(1));
	SHOW(inotify_init1(IN_NONBLOCK | IN_CLOEXEC) >= 0);
	SHOW(fcntl(inotify_fd, F_GETFL) == (O_RDONLY | O_NONBLOCK));
	SHOW(inotify_add_watch(inotify_fd, "d", 0));
	SHOW(inotify_add_watch(inotify_fd, "d", 0x00100000));
	SHOW(inotify_add_watch(inotify_fd, "d", IN_MODIFY | IN_MASK_ADD | IN_MASK_CREATE));
	SHOW(inotify_add_watch(inotify_fd, "none", IN_MODIFY));
	SHOW(inotify_add_watch(inotify_fd, "", IN_MODIFY));
	SHOW(inotify_add_watch(inotify_fd, "d/f/x", IN_MODIFY));
	SHOW(inotify_add_watch(inotify_fd, "d/f", IN_MODIFY | IN_ONLYDIR));
	SHOW(inotify_add_watch(inotify_fd, (char *)8, IN_MODIFY));
	SHOW(inotify_add_watch(-1, "d", IN_MODIFY));
	SHOW(inotify_add_watch(0, "d", IN_MODIFY));
	SHOW(inotify_rm_watch(inotify_fd, 1));
	SHOW(inotify_rm_watch(inotify_fd, -1));
	SHOW(inotify_rm_watch(0, 1));
	char b[64];
	SHOW(read(inotify_fd, b, sizeof b));
	SHOW(write(inotify_fd, b, 1));
	SHOW(lseek(inotify_fd, 0, SEEK_SET));
	SHOW(lseek(inotify_fd, 5, SEEK_CUR));
	SHOW(lseek(inotify_fd, 0, 9));
	SHOW(pread(inotify_fd, b, 64, 0));
}

static void masks(void)
{
	int a = watch("d/f", IN_OPEN, "f");
	SHOW(inotify_add_watch(inotify_fd, "d/f", IN_CLOSE_WRITE | IN_MASK_CREATE));
	SHOW(inotify_add_watch(inotify_fd, "./d/../d/f", IN_CLOSE_NOWRITE) == a);
	CHECK(close(open("d/f", O_RDONLY)) == 0);
	events("replaced");
	SHOW(inotify_add_watch(inotify_fd, "d/f", IN_OPEN | IN_MASK_ADD) == a);
	CHECK(close(open("d/f", O_RDONLY)) == 0);
	events("added");
	SHOW(inotify_rm_watch(inotify_fd, a));
	SHOW(inotify_rm_watch(inotify_fd, a));
	CHECK(close(open("d/f", O_RDONLY)) == 0);
	events("removed");
	int b = watch("d/f", IN_OPEN | IN_ONESHOT, "once");
	SHOW(b == a + 1);
	for (int i = 0; i < 2; i++)
		CHECK(close(open("d/f", O_RDONLY)) == 0);
	events("one shot");
	SHOW(inotify_rm_watch(inotify_fd, b));
	CHECK(symlink("f", "d/link") == 0);
	int c = watch("d/link", IN_ATTRIB | IN_OPEN | IN_DONT_FOLLOW, "link"), d = watch("d/link", IN_OPEN | IN_ATTRIB, "followed");
	SHOW(d == c + 1);
	CHECK(close(open("d/link", O_RDONLY)) == 0);
	events("through a link");
	CHECK(unlink("d/link") == 0);
	events("the link is gone");
	CHECK(inotify_rm_watch(inotify_fd, d) == 0);
	events("removed");
}

static void unlinked(void)
{
	for (int excluded = 0; excluded < 2; excluded++) {
		int w = watch("d", IN_MODIFY | IN_CLOSE | IN_DELETE | (excluded ? IN_EXCL_UNLINK : 0), "d");
		int f = open("d/x", O_CREAT | O_RDWR, 0600);
		CHECK(write(f, "x", 1) == 1 && unlink("d/x") == 0 && write(f, "x", 1) == 1 && close(f) == 0);
		events(excluded ? "excluded" : "included");
		CHECK(inotify_rm_watch(inotify_fd, w) == 0);
		events("removed");
	}
}

static void merging(void)
{
	int w = watch("d/f", IN_MODIFY | IN_ACCESS, "f"), f = open("d/f", O_RDWR);
	char c;
	for (int i = 0; i < 3; i++)
		CHECK(pwrite(f, "x", 1, 0) == 1);
	CHECK(pread(f, &c, 1, 0) == 1 && pread(f, &c, 1, 0) == 1 && pwrite(f, "x", 1, 0) == 1);
	events("equal events are one");
	CHECK(close(f) == 0 && inotify_rm_watch(inotify_fd, w) == 0);
	events("removed");
}

static void reading(void)
{
	char b[4096] __attribute__((aligned(8)));
	int w = watch("d", IN_CREATE | IN_DELETE, "d"), n;
	static const char *const files[] = {"d/1", "d/sixteen bytes_", "d/a name of more than sixteen bytes", "d/fifteen bytes_"};
	for (int i = 0; i < LEN(files); i++)
		make_file(files[i]);
	CHECK(ioctl(inotify_fd, FIONREAD, &n) == 0);
	printf("%d bytes wait\n", n);
	struct pollfd p = {.fd = inotify_fd, .events = POLLIN | POLLOUT};
	SHOW(poll(&p, 1, 0));
	printf("events %x\n", p.revents);
	SHOW(read(inotify_fd, b, 0));
	SHOW(read(inotify_fd, b, 31));
	ssize_t r = read(inotify_fd, b, 32);
	print_events("32 bytes", b, r);
	r = read(inotify_fd, b, 100);
	print_events("100 bytes", b, r);
	r = read(inotify_fd, b, sizeof b);
	print_events("the rest", b, r);
	SHOW(poll(&p, 1, 0));
	for (int i = 0; i < LEN(files); i++)
		CHECK(unlink(files[i]) == 0);
	SHOW(syscall(SYS_read, inotify_fd, 8, 100));
	events("after a bad address");
	CHECK(inotify_rm_watch(inotify_fd, w) == 0);
	events("removed");
}

static void *makes(void *arg)
{
	nap();
	make_file(arg);
	return NULL;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void waiting(void)
{
	int w = watch("d", IN_CREATE, "d");
	CHECK(fcntl(inotify_fd, F_SETFL, 0) == 0);
	pthread_t t = start(makes, "d/w1");
	events("read that waits");
	finish(t);
	struct pollfd p = {.fd = inotify_fd, .events = POLLIN};
	t = start(makes, "d/w2");
	SHOW(poll(&p, 1, -1));
	finish(t);
	events("after poll");
	int ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, inotify_fd, &e));
	t = start(makes, "d/w3");
	SHOW(epoll_wait(ep, &e, 1, -1));
	finish(t);
	SHOW(epoll_wait(ep, &e, 1, 0));
	make_file("d/w4");
	SHOW(epoll_wait(ep, &e, 1, 0));
	events("after epoll");
	struct itimerval every = {{0, 3000}, {0, 3000}}, none = {{0, 0}, {0, 0}};
	char b[100];
	on_signal(SIGALRM, on_alarm, 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	SHOW(read(inotify_fd, b, sizeof b));
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	CHECK(fcntl(inotify_fd, F_SETFL, O_NONBLOCK) == 0 && inotify_rm_watch(inotify_fd, w) == 0);
	events("removed");
}

static void overflow(void)
{
	char text[32];
	CHECK(read_file("/proc/sys/fs/inotify/max_queued_events", text, sizeof text) > 0);
	int most = atoi(text), w = watch("d", IN_OPEN | IN_CLOSE, "d"), n = 0, bytes = 0, last = 0;
	for (int i = 0; i < most; i++)
		CHECK(close(open("d/f", O_RDONLY)) == 0);
	for (;;) {
		char b[16384] __attribute__((aligned(8)));
		ssize_t r = read(inotify_fd, b, sizeof b);
		if (r < 0)
			break;
		bytes += r;
		for (char *p = b; p < b + r; p += sizeof(struct inotify_event) + ((struct inotify_event *)p)->len) {
			n++;
			last = ((struct inotify_event *)p)->mask;
		}
	}
	printf("%s, the last is an overflow: %d\n", n == most + 1 ? "as many as fit" : "another number", last == IN_Q_OVERFLOW);
	CHECK(inotify_rm_watch(inotify_fd, w) == 0);
	events("removed");
}

static void ended(void)
{
	watch("d", IN_CREATE, "d");
	int copy = dup(inotify_fd);
	make_file("d/last");
	CHECK(close(copy) == 0);
	events("a copy is closed");
	pid_t pid = fork();
	if (pid == 0) {
		make_file("d/of-child");
		events("in the child");
		_exit(0);
	}
	wait_for(pid);
	events("in the parent");
	// A second instance has a queue of its own.
	int first = inotify_fd;
	inotify_fd = inotify_init1(IN_NONBLOCK);
	watch("d", IN_CREATE, "d");
	make_file("d/both");
	events("second instance");
	CHECK(close(inotify_fd) == 0);
	inotify_fd = first;
	events("first instance");
}

static void executed(void)
{
	write_file("prog", "#!/bin/sh\n:\n");
	CHECK(chmod("prog", 0755) == 0);
	watch("prog", IN_OPEN | IN_CLOSE, "prog");
	pid_t pid = fork();
	if (pid == 0) {
		execl("./prog", "prog", NULL);
		_exit(1);
	}
	CHECK(wait_for(pid) == 0);
	char b[4096];
	CHECK(read(inotify_fd, b, sizeof b) >= 32);
	printf("a program that runs is open\n");
}

int main(void)
{
	inotify_fd = inotify_init1(IN_NONBLOCK);
	CHECK(inotify_fd >= 0 && mkdir("d", 0755) == 0);
	make_file("d/f");
	errors();
	masks();
	unlinked();
	merging();
	reading();
	waiting();
	overflow();
	ended();
	executed();
	SHOW(syscall(SYS_inotify_init) >= 0);
	return 0;
}
