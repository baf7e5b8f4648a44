// TCP over the IPv6 loopback, where there is one: addresses, dual-stack sockets, mapped IPv4 addresses.
#include "inet.h"

#include <netdb.h>

static struct sockaddr_in6 any6(uint16_t port)
{
	return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
}

int main(void)
{
	int s = socket(AF_INET6, SOCK_STREAM, 0), off = 0;
	struct sockaddr_in6 a = any6(0);
	socklen_t n = sizeof a;
	if (s >= 0) {
		a.sin6_addr = in6addr_loopback;
		if (bind(s, (struct sockaddr *)&a, sizeof a) != 0) {
			CHECK(errno == EADDRNOTAVAIL);
			close(s);
			s = -1;
		}
	} else {
		CHECK(errno == EAFNOSUPPORT);
	}
	if (s >= 0) {
		char buf[10], text[64];
		CHECK(listen(s, 1) == 0 && getsockname(s, (struct sockaddr *)&a, &n) == 0);
		CHECK(n == sizeof a && a.sin6_port != 0);
		int c = socket(AF_INET6, SOCK_STREAM, 0);
		CHECK(connect(c, (struct sockaddr *)&a, sizeof a) == 0);
		struct sockaddr_in6 peer;
		n = sizeof peer;
		int t = accept(s, (struct sockaddr *)&peer, &n);
		CHECK(t >= 0 && n == sizeof peer && memcmp(&peer.sin6_addr, &in6addr_loopback, 16) == 0);
		CHECK(inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text) && strcmp(text, "::1") == 0);
		CHECK(send(c, "six", 3, 0) == 3 && recv(t, buf, 10, 0) == 3 && memcmp(buf, "six", 3) == 0);

		// One socket for clients of both families.
		int both = socket(AF_INET6, SOCK_STREAM, 0);
		a = any6(0);
		CHECK(setsockopt(both, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
		CHECK(bind(both, (struct sockaddr *)&a, sizeof a) == 0 && listen(both, 2) == 0);
		n = sizeof a;
		CHECK(getsockname(both, (struct sockaddr *)&a, &n) == 0);
		int four = tcp();
		CHECK(connect_to(four, ntohs(a.sin6_port)) == 0);
		n = sizeof peer;
		CHECK((t = accept(both, (struct sockaddr *)&peer, &n)) >= 0);
		CHECK(IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr));
		CHECK(send(t, "four", 4, 0) == 4 && recv(four, buf, 10, 0) == 4);
	}
	printf("consistent\n");
	return 0;
}
