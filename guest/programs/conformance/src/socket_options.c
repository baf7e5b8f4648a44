// Socket options and the values read back: types, buffers, keep-alive, linger, NODELAY, listening state, IPv4 settings.
#include "inet.h"

static int get(int s, int level, int option)
{
	int v = -1;
	socklen_t n = sizeof v;
	if (getsockopt(s, level, option, &v, &n) != 0)
		return -errno;
	return v;
}

static int set(int s, int level, int option, int v)
{
	return setsockopt(s, level, option, &v, sizeof v);
}

int main(void)
{
	int s = tcp(), u = socket(AF_INET, SOCK_DGRAM, 0), x = socket(AF_UNIX, SOCK_SEQPACKET, 0), l = listener();
	printf("types %d %d %d\n", get(s, SOL_SOCKET, SO_TYPE), get(u, SOL_SOCKET, SO_TYPE), get(x, SOL_SOCKET, SO_TYPE));
	printf("domains %d %d\n", get(s, SOL_SOCKET, SO_DOMAIN), get(x, SOL_SOCKET, SO_DOMAIN));
	printf("protocols %d %d %d\n", get(s, SOL_SOCKET, SO_PROTOCOL), get(u, SOL_SOCKET, SO_PROTOCOL), get(x, SOL_SOCKET, SO_PROTOCOL));
	printf("listening %d %d\n", get(s, SOL_SOCKET, SO_ACCEPTCONN), get(l, SOL_SOCKET, SO_ACCEPTCONN));
	printf("error %d\n", get(s, SOL_SOCKET, SO_ERROR));
	static const struct {
		const char *name;
		int level, option;
	} flag[] = {
		{"REUSEADDR", SOL_SOCKET, SO_REUSEADDR}, {"REUSEPORT", SOL_SOCKET, SO_REUSEPORT},
		{"KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE}, {"BROADCAST", SOL_SOCKET, SO_BROADCAST},
		{"OOBINLINE", SOL_SOCKET, SO_OOBINLINE}, {"NODELAY", IPPROTO_TCP, TCP_NODELAY},
		{"CORK", IPPROTO_TCP, TCP_CORK},
	};
	for (int i = 0; i < LEN(flag); i++) {
		int before = get(s, flag[i].level, flag[i].option);
		CHECK(set(s, flag[i].level, flag[i].option, 5) == 0);
		printf("%s: %d, then %d\n", flag[i].name, before, get(s, flag[i].level, flag[i].option));
		CHECK(set(s, flag[i].level, flag[i].option, 0) == 0 && get(s, flag[i].level, flag[i].option) == 0);
	}
	// Buffer sizes are doubled, and have a minimum.
	CHECK(set(s, SOL_SOCKET, SO_RCVBUF, 20000) == 0 && set(s, SOL_SOCKET, SO_SNDBUF, 20000) == 0);
	printf("buffers %d %d\n", get(s, SOL_SOCKET, SO_RCVBUF), get(s, SOL_SOCKET, SO_SNDBUF));
	CHECK(set(s, SOL_SOCKET, SO_RCVBUF, 1) == 0 && get(s, SOL_SOCKET, SO_RCVBUF) > 1);
	CHECK(set(s, SOL_SOCKET, SO_PRIORITY, 3) == 0);
	printf("priority %d\n", get(s, SOL_SOCKET, SO_PRIORITY));
	struct linger g = {1, 5};
	socklen_t n = sizeof g;
	SHOW(setsockopt(s, SOL_SOCKET, SO_LINGER, &g, sizeof g));
	g = (struct linger){0};
	SHOW(getsockopt(s, SOL_SOCKET, SO_LINGER, &g, &n));
	printf("linger %d %d\n", g.l_onoff, g.l_linger);
	struct timeval tv = {3, 500000};
	n = sizeof tv;
	SHOW(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv));
	tv = (struct timeval){0};
	SHOW(getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, &n));
	printf("time-out %ld %ld\n", (long)tv.tv_sec, (long)tv.tv_usec);
	tv.tv_usec = 1000000;
	SHOW(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv));
	CHECK(set(s, IPPROTO_TCP, TCP_KEEPIDLE, 30) == 0 && set(s, IPPROTO_TCP, TCP_KEEPINTVL, 10) == 0);
	printf("keep-alive %d %d\n", get(s, IPPROTO_TCP, TCP_KEEPIDLE), get(s, IPPROTO_TCP, TCP_KEEPINTVL));
	CHECK(set(s, IPPROTO_IP, IP_TOS, 0x10) == 0 && set(s, IPPROTO_IP, IP_TTL, 44) == 0);
	printf("tos %d ttl %d\n", get(s, IPPROTO_IP, IP_TOS), get(s, IPPROTO_IP, IP_TTL));

	// getsockopt writes no more than the value and cuts it to the given length.
	char text[8] = "#######";
	n = 2;
	SHOW(getsockopt(s, SOL_SOCKET, SO_TYPE, text, &n));
	printf("length %d, %d %d %c\n", (int)n, text[0], text[1], text[2]);
	n = -1;
	SHOW(getsockopt(s, SOL_SOCKET, SO_TYPE, text, &n));
	SHOW(setsockopt(s, SOL_SOCKET, SO_TYPE, text, 4));
	SHOW(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, NULL, 4));

	// Two sockets share a port when both set the option.
	int a = tcp(), b = tcp();
	CHECK(set(a, SOL_SOCKET, SO_REUSEPORT, 1) == 0 && bind_to(a, 0) == 0);
	SHOW(bind_to(b, port_of(a)));
	CHECK(set(b, SOL_SOCKET, SO_REUSEPORT, 1) == 0);
	SHOW(bind_to(b, port_of(a)));
	// getsockname of a socket that is not bound.
	struct sockaddr_in name;
	n = sizeof name;
	SHOW(getsockname(tcp(), (struct sockaddr *)&name, &n));
	printf("family %d, port %d, address %x\n", name.sin_family, name.sin_port, name.sin_addr.s_addr);
	n = 4;
	SHOW(getsockname(l, (struct sockaddr *)&name, &n));
	printf("whole length %d\n", (int)n);
	return 0;
}
