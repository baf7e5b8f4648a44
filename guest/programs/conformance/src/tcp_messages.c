// TCP send and receive flags: PEEK, DONTWAIT, WAITALL, NOSIGNAL, MORE; sendmsg and recvmsg vectors; out-of-band byte.
#include "inet.h"

static int pair[2];

static void *slow_sender(void *arg)
{
	for (int i = 0; i < 10; i++) {
		CHECK(send(pair[0], "0123456789" + i, 1, 0) == 1);
		if (i % 3 == 0)
			nap();
	}
	return arg;
}

int main(void)
{
	char a[20] = {0}, b[20] = {0};
	connection(pair);
	CHECK(setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
	SHOW(send(pair[0], "hello", 5, 0));
	SHOW(recv(pair[1], a, 20, MSG_PEEK));
	SHOW(recv(pair[1], a, 2, MSG_PEEK));
	SHOW(recv(pair[1], a, 20, 0));
	printf("%s\n", a);
	SHOW(recv(pair[1], a, 20, MSG_DONTWAIT));
	pthread_t t = start(slow_sender, NULL);
	SHOW(recv(pair[1], a, 10, MSG_WAITALL));
	finish(t);
	printf("%s\n", a);
	// MSG_WAITALL ends early at the end of the stream.
	struct iovec out[3] = {{"ab", 2}, {"", 0}, {"cdef", 4}}, in[2] = {{a, 3}, {b, 10}};
	struct msghdr mo = {.msg_iov = out, .msg_iovlen = 3}, mi = {.msg_iov = in, .msg_iovlen = 2};
	SHOW(sendmsg(pair[0], &mo, MSG_MORE));
	SHOW(send(pair[0], "!", 1, 0));
	SHOW(recvmsg(pair[1], &mi, MSG_PEEK) >= 6);
	while (recv(pair[1], a, 7, MSG_PEEK) < 7)
		sched_yield();
	memset(a, 0, sizeof a);
	SHOW(recvmsg(pair[1], &mi, 0));
	printf("%.3s %.4s, flags %d, name %d\n", a, b, mi.msg_flags, (int)mi.msg_namelen);
	SHOW(write(pair[0], "tail", 4));
	CHECK(shutdown(pair[0], SHUT_WR) == 0);
	SHOW(recv(pair[1], a, 20, MSG_WAITALL));
	SHOW(recv(pair[1], a, 20, MSG_WAITALL));
	SHOW(send(pair[0], "x", 1, MSG_NOSIGNAL));
	SHOW(recv(pair[1], a, 0, 0));
	// A socket still receives after its sending side is shut down.
	SHOW(send(pair[1], "reply", 5, 0));
	SHOW(recv(pair[0], a, 20, 0));
	SHOW(recvfrom(pair[0], a, 20, MSG_DONTWAIT, NULL, NULL));
	SHOW(send(pair[1], a, 1, MSG_OOB) == 1 || errno == EOPNOTSUPP);
	mo.msg_iovlen = 5000;
	SHOW(sendmsg(pair[1], &mo, 0));
	return 0;
}
