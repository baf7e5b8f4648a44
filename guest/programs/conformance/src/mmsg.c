// Several messages with one call: sendmmsg and recvmmsg over UDP and UNIX sockets, with time-outs, errors and bad memory in the middle.
#include "inet.h"

#include <sys/uio.h>

enum { N = 4 };

static struct mmsghdr m[N];
static struct iovec v[N];
static char buf[N][16];

static void prepare(int size)
{
	memset(m, 0, sizeof m);
	for (int i = 0; i < N; i++) {
		memset(buf[i], 'a' + i, sizeof buf[i]);
		v[i] = (struct iovec){buf[i], size ? size : i + 1};
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
}

static void lengths(int n)
{
	for (int i = 0; i < n; i++)
		printf(" %u:%.*s%s", m[i].msg_len, (int)m[i].msg_len, buf[i], m[i].msg_hdr.msg_flags & MSG_TRUNC ? " cut" : "");
	puts("");
}

static void use(int a, int b)
{
	struct timespec t = {0, 20 * MSEC};
	int n;
	prepare(0);
	SHOW(sendmmsg(a, m, N, 0));
	prepare(2);
	SHOW(n = recvmmsg(b, m, N, MSG_WAITFORONE, NULL));
	lengths(n);
	SHOW(recvmmsg(b, m, N, MSG_DONTWAIT, NULL));
	prepare(0);
	SHOW(sendmmsg(a, m, 2, 0));
	prepare(16);
	SHOW(n = recvmmsg(b, m, 2, 0, &t));
	lengths(n);
	SHOW(sendmmsg(a, m, 0, 0));
	SHOW(recvmmsg(b, m, 0, MSG_DONTWAIT, NULL));
	// An error ends the call; the messages before it count.
	prepare(0);
	v[2].iov_base = (void *)1;
	SHOW(sendmmsg(a, m, N, 0));
	prepare(16);
	SHOW(n = recvmmsg(b, m, N, MSG_DONTWAIT, NULL));
	lengths(n);
	prepare(0);
	CHECK(sendmmsg(a, m, N, 0) == N);
	prepare(16);
	v[1].iov_base = (void *)1;
	SHOW(n = recvmmsg(b, m, N, MSG_DONTWAIT, NULL));
	lengths(n);
	prepare(16);
	SHOW(n = recvmmsg(b, m, N, MSG_DONTWAIT, NULL));
	lengths(n);
	prepare(16);
	SHOW(n = recvmmsg(b, m, N, MSG_DONTWAIT, NULL));
	lengths(n < 0 ? 0 : n);
	SHOW(recvmmsg(b, (void *)1, 1, MSG_DONTWAIT, NULL));
	SHOW(sendmmsg(a, (void *)1, 1, 0));
	t = (struct timespec){0, SEC};
	SHOW(recvmmsg(b, m, 1, 0, &t));
	SHOW(recvmmsg(b, m, 1, 0, (void *)1));
}

int main(void)
{
	int s[2];
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
	use(s[0], s[1]);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
	use(s[0], s[1]);
	s[0] = socket(AF_INET, SOCK_DGRAM, 0), s[1] = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(bind_to(s[1], 0) == 0 && connect_to(s[0], port_of(s[1])) == 0);
	use(s[0], s[1]);
	return 0;
}
