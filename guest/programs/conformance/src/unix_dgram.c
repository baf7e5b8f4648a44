// UNIX datagram and seqpacket sockets: message boundaries, truncation, senders' names, connected ones, full queues.
#include "conformance.h"

#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path, path);
	return a;
}

static int bound(int type, const char *path)
{
	struct sockaddr_un a = at(path);
	int s = socket(AF_UNIX, type, 0);
	CHECK(s >= 0 && bind(s, (struct sockaddr *)&a, sizeof a) == 0);
	return s;
}

static ssize_t to(int s, const char *path, const char *text)
{
	struct sockaddr_un a = at(path);
	return sendto(s, text, strlen(text), MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a);
}

int main(void)
{
	char buf[100] = {0};
	struct sockaddr_un from;
	socklen_t len = sizeof from;
	int a = bound(SOCK_DGRAM, "a"), b = bound(SOCK_DGRAM, "b"), c = socket(AF_UNIX, SOCK_DGRAM, 0), p[2];
	SHOW(to(b, "a", "one"));
	SHOW(to(b, "a", ""));
	SHOW(to(c, "a", "three, longer"));
	SHOW(recvfrom(a, buf, sizeof buf, 0, (struct sockaddr *)&from, &len));
	printf("%s from %s\n", buf, from.sun_path);
	SHOW(recvfrom(a, buf, sizeof buf, 0, (struct sockaddr *)&from, &len));
	len = sizeof from;
	memset(buf, 0, sizeof buf);
	SHOW(recvfrom(a, buf, 5, 0, (struct sockaddr *)&from, &len));
	printf("%s, name of %d bytes\n", buf, (int)len);
	SHOW(recv(a, buf, sizeof buf, MSG_DONTWAIT));
	SHOW(to(b, "a", "truncated"));
	SHOW(recv(a, buf, 3, MSG_TRUNC));
	SHOW(to(b, "a", "peeked"));
	SHOW(recv(a, buf, 100, MSG_PEEK));
	SHOW(recv(a, buf, 100, 0));
	struct msghdr m = {.msg_iov = &(struct iovec){buf, 4}, .msg_iovlen = 1};
	SHOW(to(b, "a", "flagged"));
	SHOW(recvmsg(a, &m, 0));
	printf("truncated %d\n", (m.msg_flags & MSG_TRUNC) != 0);

	struct sockaddr_un name = at("a");
	SHOW(connect(c, (struct sockaddr *)&name, sizeof name));
	SHOW(send(c, "connected", 9, 0));
	SHOW(recv(a, buf, 100, 0));
	// A connected receiver takes no messages from others.
	name = at("b");
	SHOW(connect(a, (struct sockaddr *)&name, sizeof name));
	SHOW(to(c, "a", "refused"));
	SHOW(to(b, "a", "accepted"));
	SHOW(recv(a, buf, 100, 0));
	SHOW(to(b, "missing", "x"));
	CHECK(close(b) == 0);
	SHOW(to(c, "b", "nobody there"));
	SHOW(send(a, "x", 1, 0));
	SHOW(send(socket(AF_UNIX, SOCK_DGRAM, 0), "x", 1, 0));
	name.sun_family = AF_UNSPEC;
	SHOW(connect(a, (struct sockaddr *)&name, sizeof name));

	// Pairs; queues that are full.
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) == 0);
	SHOW(write(p[0], "first", 5));
	SHOW(write(p[0], "second", 6));
	SHOW(read(p[1], buf, 100));
	SHOW(read(p[1], buf, 100));
	SHOW(read(p[1], buf, 100));
	while (send(p[0], buf, 10, 0) == 10)
		;
	printf("full: %s\n", errname(errno));
	CHECK(close(p[1]) == 0);
	SHOW(send(p[0], "x", 1, MSG_NOSIGNAL));

	// Sequenced packets: connections with boundaries.
	int l = bound(SOCK_SEQPACKET, "seq"), s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	name = at("seq");
	CHECK(listen(l, 1) == 0);
	SHOW(connect(s, (struct sockaddr *)&name, sizeof name));
	int t = accept(l, NULL, NULL);
	SHOW(send(s, "packet one", 10, 0));
	SHOW(send(s, "two", 3, 0));
	SHOW(recv(t, buf, 4, 0));
	SHOW(recv(t, buf, 100, 0));
	CHECK(close(s) == 0);
	SHOW(recv(t, buf, 100, 0));
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	SHOW(connect(s, (struct sockaddr *)&name, sizeof name));
	SHOW(connect(c, (struct sockaddr *)&name, sizeof name));
	SHOW(listen(c, 1));
	SHOW(accept(c, NULL, NULL));
	return 0;
}
