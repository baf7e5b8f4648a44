// Cancellation of threads blocked in file, pipe, socket and polling calls.
#include "conformance.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int empty[2], full[2], pair[2], listener, epfd, evfd;
static atomic_int entered;
static char buf[4096];

#define BLOCKER(name, call)             \
	static void *name(void *arg)    \
	{                               \
		entered = 1;            \
		long r = (long)(call);  \
		(void)r;                \
		return arg;             \
	}

static struct pollfd *waiting(void)
{
	static struct pollfd p;
	p = (struct pollfd){.fd = empty[0], .events = POLLIN};
	return &p;
}

static fd_set *readable(void)
{
	static fd_set set;
	FD_ZERO(&set);
	FD_SET(empty[0], &set);
	return &set;
}

static struct msghdr *message(void)
{
	static struct iovec v = {buf, 10};
	static struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	return &m;
}

BLOCKER(by_read, read(empty[0], buf, 10))
BLOCKER(by_write, write(full[1], buf, sizeof buf))
BLOCKER(by_readv, readv(empty[0], &(struct iovec){buf, 10}, 1))
BLOCKER(by_writev, writev(full[1], &(struct iovec){buf, 10}, 1))
BLOCKER(by_poll, poll(waiting(), 1, -1))
BLOCKER(by_ppoll, ppoll(waiting(), 1, NULL, NULL))
BLOCKER(by_select, select(empty[0] + 1, readable(), NULL, NULL, NULL))
BLOCKER(by_pselect, pselect(empty[0] + 1, readable(), NULL, NULL, NULL, NULL))
BLOCKER(by_epoll, epoll_wait(epfd, &(struct epoll_event){.events = 0}, 1, -1))
BLOCKER(by_epoll_p, epoll_pwait(epfd, &(struct epoll_event){.events = 0}, 1, -1, NULL))
BLOCKER(by_recv, recv(pair[0], buf, 10, 0))
BLOCKER(by_recvfrom, recvfrom(pair[0], buf, 10, 0, NULL, NULL))
BLOCKER(by_recvmsg, recvmsg(pair[0], message(), 0))
BLOCKER(by_send, send(pair[1], buf, 100, 0))
BLOCKER(by_sendmsg, sendmsg(pair[1], message(), 0))
BLOCKER(by_accept, accept(listener, NULL, NULL))
BLOCKER(by_accept4, accept4(listener, NULL, NULL, SOCK_CLOEXEC))
BLOCKER(by_open, open("fifo", O_RDONLY))
BLOCKER(by_eventfd, read(evfd, buf, 8))

static void try(const char *name, void *(*f)(void *), bool blocked)
{
	entered = 0;
	pthread_t t = start(f, NULL);
	while (blocked && !entered)
		nap();
	OK(pthread_cancel(t));
	printf("%s, %s: %d\n", name, blocked ? "blocked" : "pending", finish(t) == PTHREAD_CANCELED);
}

int main(void)
{
	CHECK(pipe(empty) == 0);
	CHECK(pipe2(full, O_NONBLOCK) == 0);
	while (write(full[1], buf, sizeof buf) > 0)
		;
	CHECK(errno == EAGAIN);
	CHECK(fcntl(full[1], F_SETFL, 0) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	while (send(pair[1], buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
	while (send(pair[1], buf, 1, MSG_DONTWAIT) > 0)
		;
	CHECK(errno == EAGAIN);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "socket"};
	CHECK(bind(listener, (struct sockaddr *)&addr, sizeof addr) == 0);
	CHECK(listen(listener, 1) == 0);
	CHECK((epfd = epoll_create1(0)) >= 0);
	struct epoll_event ev = {.events = EPOLLIN};
	CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, empty[0], &ev) == 0);
	CHECK((evfd = eventfd(0, 0)) >= 0);
	CHECK(mkfifo("fifo", 0600) == 0);

	static const struct {
		const char *name;
		void *(*f)(void *);
	} all[] = {
		{"read", by_read},         {"write", by_write},       {"readv", by_readv},
		{"writev", by_writev},     {"poll", by_poll},         {"ppoll", by_ppoll},
		{"select", by_select},     {"pselect", by_pselect},   {"epoll_wait", by_epoll},
		{"epoll_pwait", by_epoll_p}, {"recv", by_recv},       {"recvfrom", by_recvfrom},
		{"recvmsg", by_recvmsg},   {"send", by_send},         {"sendmsg", by_sendmsg},
		{"accept", by_accept},     {"accept4", by_accept4},   {"open of a FIFO", by_open},
		{"eventfd", by_eventfd},
	};
	// recv at the sending end: no data ever arrives.
	int receive = pair[1], send_on = pair[0];
	for (int i = 0; i < LEN(all); i++) {
		bool receiver = strncmp(all[i].name, "recv", 4) == 0;
		pair[0] = receiver ? receive : send_on;
		pair[1] = receiver ? send_on : receive;
		try(all[i].name, all[i].f, true);
	}
	pair[0] = receive;
	for (int i = 0; i < LEN(all); i++)
		if (strncmp(all[i].name, "send", 4) != 0)
			try(all[i].name, all[i].f, false);
	return 0;
}
