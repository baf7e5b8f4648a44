// TCP errors: refused, reset, broken pipe, not connected, connected already, address in use; wrong calls on sockets.
#include "inet.h"

static int refused_port(void)
{
	int s = tcp();
	CHECK(bind_to(s, 0) == 0);
	return port_of(s); // bound, but not listening
}

int main(void)
{
	char buf[100];
	int pair[2], v;
	socklen_t n = sizeof v;
	struct sockaddr_in a;
	on_signal(SIGPIPE, SIG_IGN, 0);
	int s = tcp(), port = refused_port();
	SHOW(connect_to(s, port));
	SHOW(connect_to(s, port));
	SHOW(recv(tcp(), buf, 1, 0));
	SHOW(send(tcp(), buf, 1, 0));
	SHOW(accept(tcp(), NULL, NULL));
	n = sizeof a;
	SHOW(getpeername(s, (struct sockaddr *)&a, &n));
	SHOW(shutdown(s, SHUT_RD));

	connection(pair);
	SHOW(connect_to(pair[0], port));
	SHOW(listen(pair[0], 1));
	SHOW(bind_to(pair[0], 0));
	SHOW(accept(pair[0], NULL, NULL));
	// The peer closes the connection: end of file, then a reset, then EPIPE.
	CHECK(close(pair[1]) == 0);
	SHOW(recv(pair[0], buf, 10, 0));
	SHOW(send(pair[0], "x", 1, 0));
	while (recv(pair[0], buf, 1, MSG_DONTWAIT) == 0 && send(pair[0], "x", 1, 0) == 1)
		sched_yield();
	SHOW(send(pair[0], "x", 1, 0));
	SHOW(recv(pair[0], buf, 10, 0));

	// Closing with unread data, and with zero linger, resets at once.
	connection(pair);
	CHECK(send(pair[0], "unread", 6, 0) == 6 && recv(pair[1], buf, 1, MSG_PEEK) == 1 && close(pair[1]) == 0);
	SHOW(recv(pair[0], buf, 10, 0));
	SHOW(recv(pair[0], buf, 10, 0));
	connection(pair);
	CHECK(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)) == 0);
	CHECK(close(pair[1]) == 0);
	SHOW(recv(pair[0], buf, 10, 0));
	n = sizeof v;
	SHOW(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &v, &n));
	printf("error %s\n", errname(v));

	int l = listener();
	SHOW(bind_to(tcp(), port_of(l)));
	SHOW(connect_to(l, port_of(l)));
	s = tcp();
	SHOW(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)));
	SHOW(bind_to(s, port_of(l)));
	a = loopback(0);
	a.sin_addr.s_addr = htonl(0x01020304);
	SHOW(bind(s, (struct sockaddr *)&a, sizeof a));
	SHOW(bind(s, (struct sockaddr *)&a, 3));
	a.sin_family = 77;
	SHOW(bind(s, (struct sockaddr *)&a, sizeof a));
	SHOW(connect(s, (struct sockaddr *)&a, sizeof a));

	SHOW(socket(77, SOCK_STREAM, 0));
	SHOW(socket(AF_INET, 77, 0));
	SHOW(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	SHOW(connect_to(0x7777, port));
	int file = open("/dev/null", O_RDWR);
	SHOW(connect_to(file, port));
	SHOW(recv(file, buf, 1, 0));
	SHOW(listen(file, 1));
	n = sizeof v;
	SHOW(getsockopt(file, SOL_SOCKET, SO_TYPE, &v, &n));
	SHOW(getsockopt(s, SOL_SOCKET, 7777, &v, &n));
	SHOW(setsockopt(s, 7777, 1, &v, n));
	SHOW(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &v, 1));
	SHOW(lseek(s, 0, SEEK_SET));
	SHOW(pread(s, buf, 1, 0));
	SHOW(ftruncate(s, 0));
	return 0;
}
