// Sockets that are in flight only in each other's queues are closed, and so are the descriptors in their queues.
#include "conformance.h"

#include <sys/socket.h>

static void pass(int to, const int *fds, int n)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec v = {"x", 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	CHECK(sendmsg(to, &m, 0) == 1);
}

static void pair(int s[2], int type)
{
	CHECK(socketpair(AF_UNIX, type, 0, s) == 0);
}

// drained waits until the pipe's other end is closed by the kernel's collection.
static void drained(int pipe_end, const char *what)
{
	char c;
	int s[2];
	CHECK(fcntl(pipe_end, F_SETFL, O_NONBLOCK) == 0);
	for (;;) {
		// Closing a UNIX socket makes the kernel look for unreachable sockets.
		pair(s, SOCK_STREAM);
		CHECK(close(s[0]) == 0 && close(s[1]) == 0);
		int n = read(pipe_end, &c, 1);
		if (n == 0)
			break;
		CHECK(n == -1 && errno == EAGAIN);
		usleep(1000);
	}
	printf("%s: collected\n", what);
	CHECK(close(pipe_end) == 0);
}

static void own_queue(int type, const char *what)
{
	int s[2], p[2];
	pair(s, type);
	CHECK(pipe(p) == 0);
	pass(s[0], (int[]){s[1], p[1]}, 2); // s[1] waits in its own queue
	CHECK(close(s[0]) == 0 && close(s[1]) == 0 && close(p[1]) == 0);
	drained(p[0], what);
}

static void two_queues(void)
{
	int a[2], b[2], p[2];
	pair(a, SOCK_STREAM);
	pair(b, SOCK_STREAM);
	CHECK(pipe(p) == 0);
	pass(a[0], (int[]){b[0], b[1], p[1]}, 3);
	pass(b[0], (int[]){a[0], a[1]}, 2);
	CHECK(close(a[0]) == 0 && close(a[1]) == 0 && close(b[0]) == 0 && close(b[1]) == 0 && close(p[1]) == 0);
	drained(p[0], "two pairs");
}

// A descriptor that is left keeps all of them alive.
static void reachable(void)
{
	int s[2], p[2], fds[3];
	char c, control[CMSG_SPACE(3 * sizeof(int))];
	pair(s, SOCK_STREAM);
	CHECK(pipe(p) == 0);
	pass(s[0], (int[]){s[0], s[1], p[1]}, 3);
	CHECK(close(s[0]) == 0 && close(p[1]) == 0);
	for (int i = 0; i < 20; i++) {
		int t[2];
		pair(t, SOCK_STREAM);
		CHECK(close(t[0]) == 0 && close(t[1]) == 0);
	}
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	SHOW(recvmsg(s[1], &m, 0));
	CHECK(CMSG_FIRSTHDR(&m)->cmsg_len == CMSG_LEN(sizeof fds));
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fds);
	SHOW(write(fds[2], "alive", 5));
	SHOW(write(fds[0], "too", 3));
	SHOW(read(s[1], control, 10));
	for (int i = 0; i < 3; i++)
		CHECK(close(fds[i]) == 0);
	SHOW(read(p[0], control, 10));
	SHOW(read(p[0], control, 10));
}

int main(void)
{
	own_queue(SOCK_STREAM, "stream");
	own_queue(SOCK_DGRAM, "dgram");
	own_queue(SOCK_SEQPACKET, "seqpacket");
	two_queues();
	reachable();
	return 0;
}
