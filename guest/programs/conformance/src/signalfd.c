// signalfd: reading pending signals with their details, polling, non-blocking, new masks, threads, children.
#include "conformance.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

static sigset_t set;

static void *sender(void *arg)
{
	nap();
	CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 77}) == 0);
	return arg;
}

static int ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	CHECK(poll(&p, 1, 0) >= 0);
	return p.revents & POLLIN ? 1 : 0;
}

int main(void)
{
	struct signalfd_siginfo si[4];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGCHLD);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	CHECK(fd >= 0);
	SHOW(read(fd, si, sizeof si));
	printf("ready %d\n", ready(fd));
	CHECK(kill(getpid(), SIGUSR2) == 0 && kill(getpid(), SIGUSR1) == 0);
	CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 5}) == 0);
	printf("ready %d\n", ready(fd));
	SHOW(read(fd, si, 10));
	ssize_t r = read(fd, si, sizeof si);
	printf("records %d\n", (int)(r / (ssize_t)sizeof si[0]));
	for (int i = 0; i < r / (ssize_t)sizeof si[0]; i++)
		printf("signal %s, code %d, from me %d, value %d\n", si[i].ssi_signo < 32 ? sigabbrev_np(si[i].ssi_signo) : "RT",
		       si[i].ssi_code, si[i].ssi_pid == (uint32_t)getpid(), si[i].ssi_int);
	SHOW(read(fd, si, sizeof si));

	// Blocking, from another thread; and through epoll.
	CHECK(fcntl(fd, F_SETFL, 0) == 0);
	pthread_t t = start(sender, NULL);
	SHOW(read(fd, si, sizeof si[0]) == sizeof si[0]);
	printf("value %d\n", si[0].ssi_int);
	finish(t);
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0);
	t = start(sender, NULL);
	SHOW(epoll_wait(ep, &ev, 1, -1));
	SHOW(read(fd, si, sizeof si[0]) == sizeof si[0]);
	finish(t);

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(6);
	SHOW(read(fd, si, sizeof si[0]) == sizeof si[0]);
	printf("SIG%s, status %d, child %d\n", sigabbrev_np(si[0].ssi_signo), si[0].ssi_status, si[0].ssi_pid == (uint32_t)pid);
	CHECK(wait_for(pid) == 6 << 8);

	// Another mask on the same descriptor.
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	SHOW(signalfd(fd, &one, 0) == fd);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	printf("ready for USR1: %d\n", ready(fd));
	CHECK(kill(getpid(), SIGUSR2) == 0);
	printf("ready for USR2: %d\n", ready(fd));
	SHOW(signalfd(0x7777, &one, 0));
	SHOW(signalfd(ep, &one, 0));
	SHOW(signalfd(-1, &one, 77));
	SHOW(write(fd, si, sizeof si[0]));
	return 0;
}
