// Descriptors passed over UNIX sockets (SCM_RIGHTS), to oneself and a child; credentials; truncated control data.
#include "conformance.h"

#include <sys/socket.h>

union control {
	struct cmsghdr h;
	char buf[CMSG_SPACE(4 * sizeof(int))];
};

static ssize_t give(int s, const int *fd, int n, const char *text)
{
	union control c = {0};
	struct msghdr m = {.msg_iov = &(struct iovec){(void *)text, strlen(text)}, .msg_iovlen = 1};
	m.msg_control = c.buf;
	m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	c.h.cmsg_level = SOL_SOCKET;
	c.h.cmsg_type = SCM_RIGHTS;
	c.h.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&c.h), fd, n * sizeof(int));
	return sendmsg(s, &m, 0);
}

static int take(int s, int *fd, int room, int flags, int *msg_flags)
{
	union control c = {0};
	char text[20];
	struct msghdr m = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
	m.msg_control = c.buf;
	m.msg_controllen = room ? CMSG_SPACE(room * sizeof(int)) : 0;
	CHECK(recvmsg(s, &m, flags) > 0);
	if (msg_flags)
		*msg_flags = m.msg_flags;
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	if (h == NULL)
		return 0;
	CHECK(h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS);
	int n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fd, CMSG_DATA(h), n * sizeof(int));
	return n;
}

int main(void)
{
	int p[2], fd[4], got[4], flags;
	char buf[30] = {0};
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, p) == 0);
	write_file("file", "0123456789");
	fd[0] = open("file", O_RDWR);
	CHECK(pipe(fd + 1) == 0);
	SHOW(give(p[0], fd, 3, "three"));
	SHOW(take(p[1], got, 4, 0, NULL));
	CHECK(got[0] != fd[0]);
	// The same open file: one offset.
	CHECK(lseek(fd[0], 5, SEEK_SET) == 5 && read(got[0], buf, 2) == 2);
	printf("%.2s\n", buf);
	SHOW(lseek(fd[0], 0, SEEK_CUR));
	CHECK(write(got[2], "through", 7) == 7 && read(fd[1], buf, 7) == 7);
	printf("%.7s\n", buf);
	SHOW(fcntl(got[0], F_GETFD));
	for (int i = 0; i < 3; i++)
		CHECK(close(got[i]) == 0);

	// The sender closes it before it is received; close-on-exec at arrival.
	SHOW(give(p[0], fd, 1, "flying"));
	CHECK(close(fd[0]) == 0);
	SHOW(take(p[1], got, 1, MSG_CMSG_CLOEXEC, NULL));
	SHOW(fcntl(got[0], F_GETFD));
	CHECK(pread(got[0], buf, 4, 0) == 4);
	printf("%.4s\n", buf);
	// Too little room: descriptors that do not fit are closed.
	fd[0] = got[0];
	SHOW(give(p[0], fd, 3, "crowded"));
	SHOW(take(p[1], got, 1, 0, &flags));
	printf("truncated %d\n", (flags & MSG_CTRUNC) != 0);
	SHOW(give(p[0], fd, 1, "no room"));
	SHOW(take(p[1], got, 0, 0, &flags));
	printf("truncated %d\n", (flags & MSG_CTRUNC) != 0);
	// Plain read discards them.
	SHOW(give(p[0], fd, 2, "plain"));
	SHOW(read(p[1], buf, sizeof buf));
	int bad = 0x7777;
	SHOW(give(p[0], &bad, 1, "bad"));

	// A pipe's end kept open by the message alone.
	int q[2];
	CHECK(pipe(q) == 0 && write(q[1], "kept", 4) == 4);
	SHOW(give(p[0], q, 2, "pipe"));
	CHECK(close(q[0]) == 0 && close(q[1]) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(take(p[1], got, 2, 0, NULL) == 2 && read(got[0], buf, 4) == 4);
		CHECK(write(got[1], "answer", 6) == 6 && give(p[1], got, 2, "back") == 4);
		_exit(memcmp(buf, "kept", 4) == 0 ? 0 : 1);
	}
	CHECK(take(p[0], got, 2, 0, NULL) == 2 && read(got[0], buf, 6) == 6);
	printf("%.6s\n", buf);
	CHECK(wait_for(pid) == 0);
	// A socket sent over itself.
	SHOW(give(p[0], p, 1, "self"));
	SHOW(take(p[1], got, 1, 0, NULL));
	CHECK(close(p[0]) == 0 && write(got[0], "alive", 5) == 5);
	SHOW(read(p[1], buf, sizeof buf));

	// Credentials.
	struct ucred cred;
	socklen_t len = sizeof cred;
	SHOW(getsockopt(p[1], SOL_SOCKET, SO_PEERCRED, &cred, &len));
	printf("peer is me: %d %d %d\n", cred.pid == getpid(), cred.uid == getuid(), cred.gid == getgid());
	SHOW(setsockopt(p[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)));
	CHECK(write(got[0], "cred", 4) == 4);
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(struct ucred))];
	} c;
	struct msghdr m = {.msg_iov = &(struct iovec){buf, sizeof buf}, .msg_iovlen = 1};
	m.msg_control = c.buf;
	m.msg_controllen = sizeof c.buf;
	SHOW(recvmsg(p[1], &m, 0));
	CHECK(CMSG_FIRSTHDR(&m) != NULL && c.h.cmsg_type == SCM_CREDENTIALS);
	memcpy(&cred, CMSG_DATA(&c.h), sizeof cred);
	printf("sender is me: %d %d\n", cred.pid == getpid(), cred.uid == getuid());
	return 0;
}
