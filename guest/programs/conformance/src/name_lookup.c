// getaddrinfo and getnameinfo for names in /etc/hosts and for numeric addresses; inet_pton and related functions.
// static: no (name look-up loads libraries)
#include "inet.h"

#include <netdb.h>

static void look(const char *node, const char *service, int family, int type, int flags)
{
	struct addrinfo hint = {.ai_family = family, .ai_socktype = type, .ai_flags = flags}, *list;
	int r = getaddrinfo(node, service, &hint, &list);
	printf("%s %s:", node ? node : "-", service ? service : "-");
	if (r != 0) {
		printf(" %s\n", gai_strerror(r));
		return;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next) {
		char host[64], serv[32];
		CHECK(getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, serv, sizeof serv, NI_NUMERICHOST | NI_NUMERICSERV) == 0);
		printf(" %s port %s type %d", host, serv, a->ai_socktype);
	}
	printf("\n");
	freeaddrinfo(list);
}

int main(void)
{
	look("localhost", NULL, AF_INET, SOCK_STREAM, 0);
	look("localhost", "8080", AF_INET, SOCK_STREAM, AI_NUMERICSERV);
	look("127.0.0.1", "80", AF_UNSPEC, SOCK_STREAM, AI_NUMERICHOST);
	look("127.1", "80", AF_INET, SOCK_DGRAM, 0);
	look("::1", "443", AF_INET6, SOCK_STREAM, AI_NUMERICHOST);
	look(NULL, "99", AF_INET, SOCK_STREAM, AI_PASSIVE);
	look(NULL, "99", AF_INET, SOCK_STREAM, 0);
	look("not a number", "80", AF_INET, SOCK_STREAM, AI_NUMERICHOST);
	look("::1", "80", AF_INET, SOCK_STREAM, AI_NUMERICHOST);
	look("127.0.0.1", "no-such-service", AF_INET, SOCK_STREAM, 0);
	look(NULL, NULL, AF_INET, SOCK_STREAM, 0);
	look("127.0.0.1", "80", 77, SOCK_STREAM, 0);

	struct in_addr a;
	struct in6_addr a6;
	char text[64];
	SHOW(inet_pton(AF_INET, "10.20.30.40", &a));
	printf("%x %s\n", ntohl(a.s_addr), inet_ntop(AF_INET, &a, text, sizeof text));
	SHOW(inet_pton(AF_INET, "10.20.30", &a));
	SHOW(inet_pton(AF_INET, "10.20.30.400", &a));
	SHOW(inet_pton(AF_INET6, "2001:db8::ff00:42:8329", &a6));
	printf("%s\n", inet_ntop(AF_INET6, &a6, text, sizeof text));
	SHOW(inet_pton(AF_INET6, "::ffff:1.2.3.4", &a6));
	printf("%s\n", inet_ntop(AF_INET6, &a6, text, sizeof text));
	SHOW(inet_aton("1.2.3", &a));
	printf("%x\n", ntohl(a.s_addr));
	struct hostent *h = gethostbyname("localhost");
	CHECK(h != NULL && h->h_addrtype == AF_INET);
	printf("%s\n", inet_ntop(AF_INET, h->h_addr_list[0], text, sizeof text));
	return 0;
}
