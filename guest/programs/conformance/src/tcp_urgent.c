// Urgent data of TCP: MSG_OOB, SIOCATMARK, POLLPRI, SO_OOBINLINE, and where receivers stop.
#include "inet.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

static void wait_urgent(int s)
{
	struct pollfd p = {s, POLLPRI, 0};
	CHECK(poll(&p, 1, -1) == 1);
}

static void show(int s, int flags)
{
	char buf[100] = "";
	errno = 0;
	int n = recv(s, buf, 99, flags | MSG_DONTWAIT);
	printf("%d %.*s %s, at mark %d\n", n, n > 0 ? n : 0, buf, errname(errno), sockatmark(s));
}

int main(void)
{
	int s[2];
	struct msghdr m = {0};
	connection(s);
	show(s[1], MSG_OOB);
	CHECK(send(s[0], "abc", 3, 0) == 3);
	CHECK(send(s[0], "deF", 3, MSG_OOB) == 3);
	wait_urgent(s[1]);
	CHECK(send(s[0], "gh", 2, 0) == 2);
	show(s[1], MSG_PEEK);
	show(s[1], MSG_OOB | MSG_PEEK);
	show(s[1], 0);
	show(s[1], MSG_OOB);
	show(s[1], MSG_OOB);
	show(s[1], 0);
	show(s[1], 0);

	CHECK(send(s[0], "1", 1, MSG_OOB) == 1);
	wait_urgent(s[1]);
	CHECK(recvmsg(s[1], &m, MSG_OOB | MSG_DONTWAIT) == 0);
	printf("flags %x\n", m.msg_flags & (MSG_OOB | MSG_TRUNC));
	CHECK(setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &(int){1}, sizeof(int)) == 0);
	CHECK(send(s[0], "23", 2, MSG_OOB) == 2);
	wait_urgent(s[1]);
	show(s[1], MSG_OOB);
	show(s[1], 0);
	show(s[1], 0);
	show(s[1], 0);

	connection(s);
	int e = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLPRI | EPOLLET, .data.u32 = 7};
	CHECK(epoll_ctl(e, EPOLL_CTL_ADD, s[1], &ev) == 0);
	SHOW(epoll_wait(e, &ev, 1, 0));
	CHECK(send(s[0], "u", 1, MSG_OOB) == 1);
	SHOW(epoll_wait(e, &ev, 1, -1));
	printf("events %x\n", ev.events);
	show(s[1], MSG_OOB);
	CHECK(close(s[0]) == 0);
	struct pollfd p = {s[1], POLLPRI | POLLIN | POLLRDHUP, 0};
	while (poll(&p, 1, -1) != 1 || !(p.revents & POLLRDHUP))
		;
	printf("revents %x\n", p.revents);
	show(s[1], MSG_OOB);
	show(s[1], 0);
	return 0;
}
