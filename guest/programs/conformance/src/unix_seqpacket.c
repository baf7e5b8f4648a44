// Connections of UNIX sockets that keep messages apart: SOCK_SEQPACKET with names, ends, errors and credentials.
#include "conformance.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "seq"};

static int seqpacket(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK(s >= 0);
	return s;
}

static void show(int s, size_t room)
{
	char buf[100];
	struct iovec v = {buf, room};
	struct sockaddr_un from;
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_name = &from, .msg_namelen = sizeof from};
	long n = recvmsg(s, &m, MSG_DONTWAIT);
	if (n < 0)
		printf("%s\n", errname(errno));
	else
		printf("%ld %.*s flags %x, name of %d\n", n, (int)n, buf, m.msg_flags, (int)m.msg_namelen);
}

static void events(int s)
{
	struct pollfd p = {s, POLLIN | POLLOUT | POLLRDHUP, 0};
	CHECK(poll(&p, 1, 0) >= 0);
	printf("events %x\n", p.revents);
}

int main(void)
{
	int l = seqpacket(), c = seqpacket(), s;
	on_signal(SIGPIPE, SIG_DFL, 0);
	SHOW(connect(c, (struct sockaddr *)&name, sizeof name));
	CHECK(bind(l, (struct sockaddr *)&name, sizeof name) == 0);
	SHOW(connect(c, (struct sockaddr *)&name, sizeof name));
	SHOW(send(c, "x", 1, 0));
	SHOW(recv(c, &(char){0}, 1, 0));
	SHOW(listen(l, 2));
	SHOW(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name));
	SHOW(connect(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *)&name, sizeof name));
	SHOW(connect(c, (struct sockaddr *)&name, sizeof name));
	SHOW(connect(c, (struct sockaddr *)&name, sizeof name));
	CHECK(send(c, "before accept", 13, 0) == 13);
	CHECK((s = accept(l, NULL, NULL)) >= 0);
	show(s, 6);
	show(s, 100);
	CHECK(send(s, "", 0, 0) == 0 && send(s, "two", 3, 0) == 3);
	events(c);
	show(c, 100);
	show(c, 100);
	show(c, 100);
	SHOW(sendto(c, "x", 1, 0, (struct sockaddr *)&name, sizeof name));
	show(s, 100);

	struct ucred u;
	socklen_t n = sizeof u;
	SHOW(getsockopt(s, SOL_SOCKET, SO_PEERCRED, &u, &n));
	CHECK(u.pid == getpid() && u.uid == getuid() && u.gid == getgid());

	CHECK(send(c, "last", 4, 0) == 4 && shutdown(c, SHUT_WR) == 0);
	events(s);
	show(s, 100);
	show(s, 100);
	CHECK(send(s, "still", 5, 0) == 5);
	show(c, 100);
	SHOW(send(c, "x", 1, MSG_NOSIGNAL));
	SHOW(send(c, "x", 1, 0)); // no SIGPIPE for messages
	CHECK(close(c) == 0);
	events(s);
	SHOW(send(s, "x", 1, 0));
	show(s, 100);

	int pair[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	CHECK(send(pair[0], "unread", 6, 0) == 6 && close(pair[1]) == 0);
	events(pair[0]);
	show(pair[0], 100);
	show(pair[0], 100);
	SHOW(send(pair[0], "x", 1, 0));
	SHOW(unlink("seq"));
	return 0;
}
