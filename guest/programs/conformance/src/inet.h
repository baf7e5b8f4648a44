// Short forms of calls on internet sockets of the loopback interface.
#ifndef INET_H
#define INET_H

#include "conformance.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static inline struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline uint16_t port_of(int s)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	CHECK(getsockname(s, (struct sockaddr *)&a, &n) == 0 && n == sizeof a);
	return ntohs(a.sin_port);
}

static inline int bind_to(int s, uint16_t port)
{
	struct sockaddr_in a = loopback(port);
	return bind(s, (struct sockaddr *)&a, sizeof a);
}

static inline int connect_to(int s, uint16_t port)
{
	struct sockaddr_in a = loopback(port);
	return connect(s, (struct sockaddr *)&a, sizeof a);
}

static inline int tcp(void)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(s >= 0);
	return s;
}

// listener is a TCP socket that listens on a free port.
static inline int listener(void)
{
	int s = tcp();
	CHECK(bind_to(s, 0) == 0 && listen(s, 64) == 0);
	return s;
}

// connection makes a connected pair: [0] has called connect, [1] accept.
static inline void connection(int pair[2])
{
	int l = listener();
	pair[0] = tcp();
	CHECK(connect_to(pair[0], port_of(l)) == 0);
	CHECK((pair[1] = accept(l, NULL, NULL)) >= 0);
	CHECK(close(l) == 0);
}

#endif
