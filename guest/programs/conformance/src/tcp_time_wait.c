// State after a TCP connection: the side that keeps its port, and bind to that port with and without SO_REUSEADDR.
#include "inet.h"

static int reusing(void)
{
	int s = tcp();
	CHECK(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
	return s;
}

// closed makes a connection, closes one side after the other, and returns the
// ports of both.
static void closed(int l, int first, uint16_t port[2])
{
	int pair[2];
	char c;
	pair[0] = tcp();
	CHECK(connect_to(pair[0], port_of(l)) == 0 && (pair[1] = accept(l, NULL, NULL)) >= 0);
	port[0] = port_of(pair[0]), port[1] = port_of(pair[1]);
	CHECK(close(pair[first]) == 0);
	CHECK(read(pair[!first], &c, 1) == 0);
	CHECK(close(pair[!first]) == 0 && close(l) == 0);
}

static void try(uint16_t port, const char *whose)
{
	int plain = tcp(), reuse = reusing();
	printf("port of %s\n", whose);
	int r = bind_to(plain, port);
	printf("plain bind: %s\n", r ? errname(errno) : "ok");
	close(plain);
	r = bind_to(reuse, port);
	printf("bind with SO_REUSEADDR: %s\n", r ? errname(errno) : "ok");
	r = listen(reuse, 5);
	printf("listen: %s\n", r ? errname(errno) : "ok");
	close(reuse);
}

static int listening(int s)
{
	CHECK(bind_to(s, 0) == 0 && listen(s, 5) == 0);
	return s;
}

int main(void)
{
	uint16_t port[2];
	puts("the server closes first");
	closed(listening(tcp()), 1, port);
	try(port[0], "the client");
	try(port[1], "the server");
	puts("the server closes first, and its listener had SO_REUSEADDR");
	closed(listening(reusing()), 1, port);
	try(port[0], "the client");
	try(port[1], "the server");
	puts("the client closes first");
	closed(listening(reusing()), 0, port);
	try(port[1], "the server");
	try(port[0], "the client");

	// A server that starts again on its port, and its client.
	int l = listening(reusing());
	port[1] = port_of(l);
	for (int i = 0; i < 5; i++) {
		closed(l, 1, port);
		l = reusing();
		SHOW(bind_to(l, port[1]));
		SHOW(listen(l, 5));
	}
	return 0;
}
