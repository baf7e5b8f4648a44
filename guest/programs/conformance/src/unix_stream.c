// UNIX stream sockets: pairs, paths, abstract names, connecting, accepting in order, partial shutdowns, refusals.
#include "conformance.h"

#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un addr;

static socklen_t name(const char *s)
{
	memset(&addr, 0, sizeof addr);
	addr.sun_family = AF_UNIX;
	size_t n = strlen(s);
	memcpy(addr.sun_path, s, n);
	if (s[0] != '@')
		return offsetof(struct sockaddr_un, sun_path) + n + 1;
	addr.sun_path[0] = 0;
	snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "%s-%d", s + 1, (int)getpid());
	return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(addr.sun_path + 1);
}

static int sock(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(s >= 0);
	return s;
}

static int to(int s, socklen_t n)
{
	return connect(s, (struct sockaddr *)&addr, n);
}

static int bound(int s, socklen_t n)
{
	return bind(s, (struct sockaddr *)&addr, n);
}

static void serve(const char *what, socklen_t n)
{
	char buf[100] = {0};
	int l = sock(), c[3], s[3];
	CHECK(bound(l, n) == 0 && listen(l, 5) == 0);
	for (int i = 0; i < 3; i++) {
		c[i] = sock();
		CHECK(to(c[i], n) == 0);
		CHECK(dprintf(c[i], "client %d", i) == 8);
	}
	for (int i = 0; i < 3; i++) {
		CHECK((s[i] = accept(l, NULL, NULL)) >= 0);
		CHECK(read(s[i], buf, sizeof buf) == 8);
		printf("%s: %s\n", what, buf);
		CHECK(dprintf(s[i], "server %d", i) == 8);
	}
	for (int i = 0; i < 3; i++) {
		CHECK(read(c[i], buf, sizeof buf) == 8);
		CHECK(buf[7] == '0' + i);
	}
	struct sockaddr_un a;
	socklen_t len = sizeof a;
	CHECK(getsockname(s[0], (struct sockaddr *)&a, &len) == 0);
	printf("%s: own name is the listener's %d\n", what, len == n && memcmp(&a, &addr, n) == 0);
	len = sizeof a;
	CHECK(getpeername(s[0], (struct sockaddr *)&a, &len) == 0);
	printf("%s: client's name has %d bytes\n", what, (int)len - (int)sizeof a.sun_family);
	len = sizeof a;
	CHECK(getpeername(c[0], (struct sockaddr *)&a, &len) == 0 && len == n && memcmp(&a, &addr, n) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(close(c[i]) == 0 && close(s[i]) == 0);
	CHECK(close(l) == 0);
}

int main(void)
{
	char buf[100];
	int p[2];
	on_signal(SIGPIPE, SIG_IGN, 0);
	serve("path", name("socket"));
	int s = sock(), l = sock();
	SHOW(to(s, name("socket"))); // the file exists, but no socket listens
	SHOW(bound(l, name("socket")));
	CHECK(unlink("socket") == 0);
	SHOW(bound(l, name("socket")));
	SHOW(to(s, name("socket")));
	SHOW(to(s, name("missing")));
	write_file("file", "");
	SHOW(to(s, name("file")));
	serve("abstract", name("@heddle"));
	SHOW(to(s, name("@heddle"))); // the name ends with its listener
	SHOW(accept(l, NULL, NULL));
	SHOW(listen(l, 1));
	SHOW(to(s, name("socket")));
	SHOW(to(s, name("socket")));
	SHOW(bound(l, name("other")));
	SHOW(fcntl(l, F_SETFL, O_NONBLOCK));
	CHECK(accept(l, NULL, NULL) >= 0);
	SHOW(accept(l, NULL, NULL));

	// Shutting down one direction.
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, p) == 0);
	CHECK(write(p[0], "abc", 3) == 3);
	SHOW(shutdown(p[0], SHUT_WR));
	SHOW(write(p[0], "x", 1));
	SHOW(read(p[1], buf, 10));
	SHOW(read(p[1], buf, 10));
	SHOW(write(p[1], "back", 4));
	SHOW(read(p[0], buf, 10));
	SHOW(shutdown(p[0], SHUT_RD));
	SHOW(read(p[0], buf, 10));
	SHOW(write(p[1], "x", 1));
	SHOW(send(p[1], "x", 1, MSG_NOSIGNAL));
	SHOW(shutdown(p[0], 77));
	CHECK(close(p[0]) == 0);
	SHOW(read(p[1], buf, 10));
	SHOW(write(p[1], "x", 1));
	// Closing with unread data resets the peer.
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, p) == 0);
	CHECK(write(p[0], "unread", 6) == 6 && close(p[1]) == 0);
	SHOW(read(p[0], buf, 10));
	SHOW(read(p[0], buf, 10));
	SHOW(shutdown(sock(), SHUT_RD));
	SHOW(recv(sock(), buf, 10, 0));
	SHOW(send(sock(), buf, 10, 0));
	SHOW(listen(sock(), 5));
	socklen_t len = sizeof addr;
	SHOW(getpeername(sock(), (struct sockaddr *)&addr, &len));
	SHOW(socketpair(AF_UNIX, 77, 0, p));
	SHOW(socketpair(AF_INET, SOCK_STREAM, 0, p));
	SHOW(bound(sock(), 2));
	return 0;
}
