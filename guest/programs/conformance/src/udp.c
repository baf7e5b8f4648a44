// UDP over loopback: boundaries, truncation, empty datagrams, connected sockets, refusals by ICMP, many senders, vectors.
#include "inet.h"

#include <sys/ioctl.h>

static int udp(void)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(s >= 0);
	return s;
}

static ssize_t to(int s, uint16_t port, const char *text)
{
	struct sockaddr_in a = loopback(port);
	return sendto(s, text, strlen(text), 0, (struct sockaddr *)&a, sizeof a);
}

static uint16_t port;

static void *sender(void *arg)
{
	int s = udp();
	char text[20];
	for (int i = 0; i < 10; i++) {
		int n = snprintf(text, sizeof text, "%d %d", (int)(intptr_t)arg, i);
		CHECK(to(s, port, text) == n);
	}
	CHECK(close(s) == 0);
	return NULL;
}

int main(void)
{
	char buf[100] = {0};
	struct sockaddr_in from;
	socklen_t n = sizeof from;
	int a = udp(), b = udp(), v;
	CHECK(bind_to(a, 0) == 0 && bind_to(b, 0) == 0);
	port = port_of(a);
	SHOW(to(b, port, "first"));
	SHOW(to(b, port, ""));
	SHOW(to(b, port, "a longer third"));
	SHOW(ioctl(a, FIONREAD, &v));
	printf("next has %d\n", v);
	SHOW(recvfrom(a, buf, sizeof buf, 0, (struct sockaddr *)&from, &n));
	printf("%s, from the right port %d, from loopback %d\n", buf, ntohs(from.sin_port) == port_of(b),
	       from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	SHOW(recv(a, buf, sizeof buf, 0));
	SHOW(recv(a, buf, 5, MSG_PEEK | MSG_TRUNC));
	struct msghdr m = {.msg_iov = &(struct iovec){buf, 8}, .msg_iovlen = 1};
	SHOW(recvmsg(a, &m, 0));
	printf("truncated %d\n", (m.msg_flags & MSG_TRUNC) != 0);
	SHOW(recv(a, buf, sizeof buf, MSG_DONTWAIT));

	// A connected socket receives from its peer only.
	int c = udp();
	SHOW(connect_to(c, port));
	SHOW(send(c, "connected", 9, 0));
	SHOW(recv(a, buf, sizeof buf, 0));
	SHOW(to(b, port_of(c), "stranger"));
	SHOW(to(a, port_of(c), "friend"));
	SHOW(recv(c, buf, sizeof buf, 0));
	printf("%.6s\n", buf);
	SHOW(recv(c, buf, sizeof buf, MSG_DONTWAIT));
	SHOW(to(c, port_of(b), "to another all the same"));
	SHOW(recv(b, buf, sizeof buf, 0));
	n = sizeof from;
	SHOW(getpeername(c, (struct sockaddr *)&from, &n));
	from.sin_family = AF_UNSPEC;
	SHOW(connect(c, (struct sockaddr *)&from, sizeof from));
	SHOW(getpeername(c, (struct sockaddr *)&from, &n));
	SHOW(send(c, "x", 1, 0));

	// No receiver: the next call on a connected socket fails.
	int gone = udp();
	CHECK(bind_to(gone, 0) == 0);
	uint16_t empty = port_of(gone);
	CHECK(close(gone) == 0 && connect_to(c, empty) == 0);
	SHOW(send(c, "x", 1, 0));
	SHOW(recv(c, buf, sizeof buf, 0));
	SHOW(to(b, empty, "not connected: not told"));
	SHOW(recv(b, buf, sizeof buf, MSG_DONTWAIT));

	static char big[70000];
	SHOW(to(b, port, big));
	struct sockaddr_in there = loopback(port);
	SHOW(sendto(b, big, 60000, 0, (struct sockaddr *)&there, sizeof there));
	SHOW(recv(a, big, sizeof big, MSG_TRUNC));
	SHOW(recv(a, big, sizeof big, 0));
	SHOW(sendto(b, big, sizeof big, 0, (struct sockaddr *)&there, sizeof there));
	there.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	SHOW(sendto(b, "x", 1, 0, (struct sockaddr *)&there, 3));
	SHOW(listen(a, 1));
	SHOW(accept(a, NULL, NULL));
	SHOW(bind_to(udp(), port));

	pthread_t t[5];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(sender, (void *)(intptr_t)i);
	int next[5] = {0};
	for (int i = 0; i < 50; i++) {
		int who, k;
		ssize_t r = recv(a, buf, sizeof buf - 1, 0);
		CHECK(r > 0);
		buf[r] = 0;
		CHECK(sscanf(buf, "%d %d", &who, &k) == 2 && k == next[who]++);
	}
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("all fifty\n");

	// Several at once.
	struct mmsghdr mm[3] = {0};
	struct iovec iov[3] = {{"one", 3}, {"two", 3}, {"three", 5}};
	there = loopback(port);
	for (int i = 0; i < 3; i++)
		mm[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1, .msg_name = &there, .msg_namelen = sizeof there};
	SHOW(sendmmsg(b, mm, 3, 0));
	char room[4][10];
	struct mmsghdr in[4] = {0};
	struct iovec riov[4];
	for (int i = 0; i < 4; i++) {
		riov[i] = (struct iovec){room[i], sizeof room[i]};
		in[i].msg_hdr = (struct msghdr){.msg_iov = &riov[i], .msg_iovlen = 1};
	}
	SHOW(recvmmsg(a, in, 4, MSG_DONTWAIT, NULL));
	printf("%u %u %u %.5s\n", in[0].msg_len, in[1].msg_len, in[2].msg_len, room[2]);
	return 0;
}
