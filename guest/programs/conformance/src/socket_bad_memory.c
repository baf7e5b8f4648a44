// Bad memory in socket calls: data that cannot be stored stays in a stream and is lost of a message; data that cannot be read is not sent.
#include "inet.h"

#include <sys/uio.h>

static char *bad; // the second of two pages, not accessible
static long page;

static void pages(void)
{
	page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0);
	bad = p + page;
}

static void settle(int s, int want)
{
	char buf[100];
	while (recv(s, buf, sizeof buf, MSG_PEEK | MSG_DONTWAIT) < want)
		sched_yield();
}

static void streams(int a, int b)
{
	char buf[100];
	CHECK(send(a, "0123456789", 10, 0) == 10);
	settle(b, 10);
	SHOW(read(b, bad, 10));
	SHOW(recv(b, bad, 10, 0));
	SHOW(read(b, bad - 4, 10));
	SHOW(recv(b, bad - 4, 10, 0));
	struct iovec v[2] = {{bad - 4, 4}, {bad, 10}};
	SHOW(readv(b, v, 2));
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	SHOW(recvmsg(b, &m, 0));
	SHOW(recv(b, bad - 4, 10, MSG_PEEK));
	SHOW(read(b, bad - 4, 4));
	SHOW(recv(b, buf, 100, MSG_DONTWAIT));
	SHOW(recv(b, bad, 10, MSG_DONTWAIT));

	SHOW(write(a, bad, 10));
	SHOW(write(a, bad - 5, 10));
	SHOW(send(a, bad - 5, 10, 0));
	struct iovec w[2] = {{"abc", 3}, {bad, 10}};
	SHOW(writev(a, w, 2));
	SHOW(send(a, bad - 5, 5, 0));
	settle(b, 5);
	SHOW(recv(b, buf, 100, MSG_DONTWAIT));
	SHOW(recv(b, buf, 100, MSG_DONTWAIT));
}

static void messages(int a, int b)
{
	char buf[100];
	CHECK(send(a, "first", 5, 0) == 5 && send(a, "second!", 7, 0) == 7);
	SHOW(recv(b, bad, 10, 0));
	SHOW(recv(b, buf, 100, 0));
	SHOW(recv(b, buf, 100, MSG_DONTWAIT));
	CHECK(send(a, "first", 5, 0) == 5);
	SHOW(recv(b, bad - 3, 10, MSG_PEEK));
	SHOW(read(b, bad - 3, 10));
	SHOW(recv(b, buf, 100, MSG_DONTWAIT));
	SHOW(send(a, bad - 3, 10, 0));
	SHOW(write(a, bad - 3, 10));
	SHOW(recv(b, buf, 100, MSG_DONTWAIT));
}

static void headers(int a, int b)
{
	char buf[100];
	struct iovec v = {buf, 100};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	SHOW(sendmsg(a, (struct msghdr *)bad, 0));
	SHOW(recvmsg(b, (struct msghdr *)bad, MSG_DONTWAIT));
	m.msg_iov = (struct iovec *)bad;
	SHOW(sendmsg(a, &m, 0));
	SHOW(recvmsg(b, &m, MSG_DONTWAIT));
	m.msg_iov = &v, m.msg_iovlen = 1025;
	SHOW(sendmsg(a, &m, 0));
	m.msg_iovlen = 1, m.msg_control = bad, m.msg_controllen = 16;
	SHOW(sendmsg(a, &m, 0));
	m.msg_controllen = 0, m.msg_name = bad, m.msg_namelen = 16;
	SHOW(sendmsg(a, &m, 0));
	m.msg_namelen = -1;
	SHOW(sendmsg(a, &m, 0));
	SHOW(recvmsg(b, &m, MSG_DONTWAIT));
	SHOW(sendto(a, "x", 1, 0, (struct sockaddr *)bad, 16));
	SHOW(recvfrom(b, buf, 1, MSG_DONTWAIT, (struct sockaddr *)bad, (socklen_t *)bad));
	socklen_t n = 16;
	CHECK(send(a, "name", 4, 0) == 4);
	settle(b, 1);
	SHOW(recvfrom(b, buf, 100, 0, (struct sockaddr *)buf, (socklen_t *)bad));
	SHOW(getsockname(a, (struct sockaddr *)bad, &n));
	SHOW(getsockname(a, (struct sockaddr *)buf, (socklen_t *)bad));
	n = -1;
	SHOW(getsockname(a, (struct sockaddr *)buf, &n));
	SHOW(setsockopt(a, SOL_SOCKET, SO_REUSEADDR, bad, 4));
	n = 4;
	SHOW(getsockopt(a, SOL_SOCKET, SO_REUSEADDR, bad, &n));
	SHOW(getsockopt(a, SOL_SOCKET, SO_REUSEADDR, buf, (socklen_t *)bad));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)bad));
	SHOW(bind(a, (struct sockaddr *)bad, 16));
	SHOW(connect(a, (struct sockaddr *)bad, 16));
}

int main(void)
{
	int s[2];
	pages();
	on_signal(SIGPIPE, SIG_IGN, 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	streams(s[0], s[1]);
	headers(s[0], s[1]);
	connection(s);
	streams(s[0], s[1]);
	headers(s[0], s[1]);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
	messages(s[0], s[1]);
	headers(s[0], s[1]);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
	messages(s[0], s[1]);
	return 0;
}
