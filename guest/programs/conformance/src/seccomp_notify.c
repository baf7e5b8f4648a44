// seccomp listeners: another process answers system calls, lets them continue, or adds descriptors; the end of either process.
#include "seccomp.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int ends[2]; // the socket over which the listener's descriptor is passed

static void send_fd(int fd)
{
	char c = 0, control[CMSG_SPACE(sizeof fd)];
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	CHECK(sendmsg(ends[0], &m, 0) == 1);
}

static int receive_fd(void)
{
	int fd;
	char c, control[CMSG_SPACE(sizeof fd)];
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	CHECK(recvmsg(ends[1], &m, MSG_CMSG_CLOEXEC) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

static pid_t child, parent;

// begin makes a child that installs a filter with a listener and calls f; the result is
// the listener.
static int begin(const char *what, int (*f)(void), unsigned flags)
{
	printf("-- %s\n", what);
	fflush(stdout);
	parent = getpid();
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(ends[1]);
		no_new_privileges();
		int fd = install_for(SYS_getppid, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER | flags);
		CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
		send_fd(fd);
		close(fd);
		close(ends[0]);
		exit(f());
	}
	close(ends[0]);
	int fd = receive_fd();
	close(ends[1]);
	return fd;
}

static void end(int fd)
{
	struct pollfd p = {fd, POLLIN | POLLOUT, 0};
	printf("%s\n", status_text(wait_for(child)));
	SHOW(poll(&p, 1, -1));
	printf("events %#x\n", p.revents);
	close(fd);
}

static struct seccomp_notif receive(int fd)
{
	struct seccomp_notif n;
	memset(&n, 0, sizeof n);
	CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0);
	printf("from the child %d, number %d, arch %x, argument %llx, flags %d\n", n.pid == (unsigned)child, n.data.nr, n.data.arch,
	       (unsigned long long)n.data.args[0], n.flags);
	return n;
}

static int answer(int fd, uint64_t id, int64_t value, int error, unsigned flags)
{
	struct seccomp_notif_resp r = {id, value, error, flags};
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

static int calls(void)
{
	SHOW(syscall(SYS_getppid, 0x1234));
	SHOW(syscall(SYS_getppid, 0));
	CHECK(syscall(SYS_getppid, 0) == parent);
	SHOW(syscall(SYS_getppid, 0) == 7);
	return 3;
}

static void answers(void)
{
	int fd = begin("answers", calls, 0);
	struct pollfd p = {fd, POLLIN | POLLOUT, 0};
	SHOW(poll(&p, 1, -1));
	printf("events %#x\n", p.revents);
	struct seccomp_notif n = receive(fd);
	SHOW(poll(&p, 1, -1));
	printf("events %#x\n", p.revents);
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id));
	uint64_t other = n.id + 1;
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &other));
	SHOW(answer(fd, other, 1, 0, 0));
	SHOW(answer(fd, n.id, 1, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE));
	SHOW(answer(fd, n.id, 0, 0, 2));
	SHOW(answer(fd, n.id, 4711, 0, 0));
	n = receive(fd);
	SHOW(answer(fd, n.id, 5, -EPROTO, 0));
	n = receive(fd);
	SHOW(answer(fd, n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE));
	n = receive(fd);
	SHOW(answer(fd, n.id, 7, 0, 0));
	char buf[8];
	SHOW(read(fd, buf, sizeof buf));
	SHOW(write(fd, buf, sizeof buf));
	SHOW(ioctl(fd, 0x2100, &n));
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, NULL));
	memset(&n, 1, sizeof n);
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n));
	end(fd);
}

static int one_call(void)
{
	SHOW(syscall(SYS_getppid, 0));
	SHOW(syscall(SYS_getppid, 0));
	return 4;
}

static void closed(void)
{
	int fd = begin("closed", one_call, 0);
	receive(fd);
	close(fd);
	printf("%s\n", status_text(wait_for(child)));
}

static int with_descriptors(void)
{
	char text[8] = {0};
	int fd = syscall(SYS_getppid, 0);
	CHECK(read(fd, text, 4) == 4);
	printf("descriptor 9: %d, text %s, flags %d\n", fd == 9, text, fcntl(fd, F_GETFD));
	fd = syscall(SYS_getppid, 0);
	printf("the same file: %d, flags %d\n", (int)lseek(fd, 0, SEEK_CUR), fcntl(fd, F_GETFD));
	return 0;
}

static void descriptors(void)
{
	write_file("file", "text and more");
	int fd = begin("descriptors", with_descriptors, 0), file = open("file", O_RDONLY);
	struct seccomp_notif n = receive(fd);
	struct seccomp_notif_addfd a = {.id = n.id, .srcfd = file, .newfd = 9, .flags = SECCOMP_ADDFD_FLAG_SETFD};
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
	a.flags = 0;
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
	a.newfd = 0;
	a.srcfd = -1;
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
	a.srcfd = file;
	a.newfd_flags = O_APPEND;
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
	SHOW(answer(fd, n.id, 9, 0, 0));
	n = receive(fd);
	a.newfd_flags = O_CLOEXEC;
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
	a.id = n.id;
	a.flags = SECCOMP_ADDFD_FLAG_SEND;
	CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a) > 2);
	end(fd);
}

static volatile int signals;

static void on_usr(int sig)
{
	(void)sig;
	signals++;
}

static int interrupted(void)
{
	on_signal(SIGUSR1, on_usr, SA_RESTART);
	SHOW(syscall(SYS_getppid, 0));
	printf("signals %d\n", signals);
	on_signal(SIGUSR1, on_usr, 0);
	SHOW(syscall(SYS_getppid, 0));
	printf("signals %d\n", signals);
	return 0;
}

// A signal ends the wait: the notification is repeated, or the call fails.
static void signalled(void)
{
	int fd = begin("signals", interrupted, 0);
	struct seccomp_notif n = receive(fd);
	CHECK(kill(child, SIGUSR1) == 0);
	struct seccomp_notif again = receive(fd);
	printf("another: %d\n", n.id != again.id);
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id));
	SHOW(answer(fd, n.id, 1, 0, 0));
	SHOW(answer(fd, again.id, 5, 0, 0));
	n = receive(fd);
	CHECK(kill(child, SIGUSR1) == 0);
	end(fd);
}

// With WAIT_KILLABLE_RECV a notification that was received is not interrupted.
static void killable(void)
{
	int fd = begin("only killed", interrupted, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	for (int i = 0; i < 2; i++) {
		struct seccomp_notif n = receive(fd);
		CHECK(kill(child, SIGUSR1) == 0);
		nap();
		SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id));
		SHOW(answer(fd, n.id, 5, 0, 0));
	}
	end(fd);
	fd = begin("killed", one_call, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	struct seccomp_notif n = receive(fd);
	CHECK(kill(child, SIGKILL) == 0);
	printf("%s\n", status_text(wait_for(child)));
	SHOW(answer(fd, n.id, 5, 0, 0));
	memset(&n, 0, sizeof n);
	SHOW(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n));
	close(fd);
}

static void *asks(void *arg)
{
	SHOW(syscall(SYS_getppid, 0));
	return arg;
}

static int second_filter(void)
{
	SHOW(install_for(SYS_getpgrp, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_NEW_LISTENER));
	// A stricter filter takes precedence.
	SHOW(install_for(SYS_getppid, SECCOMP_RET_ERRNO | EDOM, 0));
	SHOW(syscall(SYS_getppid, 0));
	return 0;
}

static int threads(void)
{
	pthread_t t = start(asks, NULL);
	finish(t);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		asks(NULL);
		fflush(stdout);
		_exit(0);
	}
	return wait_for(pid);
}

static void others(void)
{
	int fd = begin("a second filter", second_filter, 0);
	end(fd);
	fd = begin("threads and children", threads, 0);
	for (int i = 0; i < 2; i++) {
		struct seccomp_notif n;
		memset(&n, 0, sizeof n);
		CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0 && n.pid != (unsigned)child);
		SHOW(answer(fd, n.id, 100 + i, 0, 0));
	}
	end(fd);
}

static void without_listener(void)
{
	SHOW(install_for(SYS_getppid, SECCOMP_RET_USER_NOTIF, 0));
	SHOW(syscall(SYS_getppid, 0));
}

int main(void)
{
	// The outputs of child and parent must not mix: each prints when it is done, the child
	// first.
	static char buffer[1 << 16];
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	answers();
	closed();
	descriptors();
	signalled();
	killable();
	others();
	in_child("without a listener", without_listener);
	return 0;
}
