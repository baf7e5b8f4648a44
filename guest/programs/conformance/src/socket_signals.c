// Signals and time-outs of socket calls: with SO_RCVTIMEO or SO_SNDTIMEO a call is never restarted, without one SA_RESTART decides.
#include "inet.h"

#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

static atomic_int handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void with_timer(int restart)
{
	on_signal(SIGALRM, count, restart ? SA_RESTART : 0);
	struct itimerval t = {.it_value = {0, 20000}};
	handled = 0;
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
}

static void timeout(int s, int option, int ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};
	CHECK(setsockopt(s, SOL_SOCKET, option, &t, sizeof t) == 0);
}

static void fill(int s)
{
	static char buf[65536];
	while (send(s, buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
}

static void *wake_later(void *fd)
{
	while (!handled)
		usleep(1000);
	CHECK(write(*(int *)fd, "late", 4) == 4);
	return NULL;
}

static void receiving(int a, int b)
{
	char buf[100];
	struct iovec v = {buf, sizeof buf};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	timeout(a, SO_RCVTIMEO, 10000);
	with_timer(1);
	SHOW(read(a, buf, 10));
	with_timer(1);
	SHOW(readv(a, &v, 1));
	with_timer(1);
	SHOW(recv(a, buf, 10, 0));
	with_timer(1);
	SHOW(recvmsg(a, &m, 0));
	with_timer(0);
	SHOW(read(a, buf, 10));
	printf("handled %d\n", handled);

	timeout(a, SO_RCVTIMEO, 20);
	SHOW(read(a, buf, 10));
	SHOW(recv(a, buf, 10, 0));
	SHOW(recvmsg(a, &m, 0));
	CHECK(send(b, "some", 4, 0) == 4);
	SHOW(recv(a, buf, 10, MSG_WAITALL));

	timeout(a, SO_RCVTIMEO, 0);
	with_timer(0);
	SHOW(read(a, buf, 10));
	with_timer(1);
	pthread_t t = start(wake_later, &b);
	SHOW(read(a, buf, 10));
	finish(t);
}

static void sending(int a)
{
	static char buf[1 << 20];
	struct iovec v = {buf, sizeof buf};
	fill(a);
	timeout(a, SO_SNDTIMEO, 10000);
	with_timer(1);
	SHOW(write(a, buf, sizeof buf));
	with_timer(1);
	SHOW(writev(a, &v, 1));
	with_timer(1);
	SHOW(send(a, buf, sizeof buf, 0));
	timeout(a, SO_SNDTIMEO, 20);
	SHOW(write(a, buf, sizeof buf));
	SHOW(send(a, buf, sizeof buf, 0));
	timeout(a, SO_SNDTIMEO, 0);
	with_timer(0);
	SHOW(write(a, buf, sizeof buf));
}

// A child that is stopped and continued: its call ends with EINTR if it has a
// time-out, and continues if not.
static void stopped(int a, int b, int ms)
{
	char buf[10];
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		timeout(a, SO_RCVTIMEO, ms);
		SHOW(read(a, buf, sizeof buf));
		_exit(0);
	}
	int status;
	usleep(20000);
	CHECK(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	CHECK(kill(child, SIGCONT) == 0);
	usleep(20000);
	CHECK(send(b, "x", 1, 0) == 1);
	puts(status_text(wait_for(child)));
}

int main(void)
{
	int s[2];
	on_signal(SIGPIPE, SIG_IGN, 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	receiving(s[0], s[1]);
	sending(s[0]);
	connection(s);
	receiving(s[0], s[1]);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
	receiving(s[0], s[1]);
	stopped(s[0], s[1], 10000);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	stopped(s[0], s[1], 0);

	int l = listener();
	timeout(l, SO_RCVTIMEO, 10000);
	with_timer(1);
	SHOW(accept(l, NULL, NULL));
	timeout(l, SO_RCVTIMEO, 20);
	SHOW(accept(l, NULL, NULL));
	timeout(l, SO_RCVTIMEO, 0);
	with_timer(0);
	SHOW(accept(l, NULL, NULL));

	// A UNIX listener whose queue is full.
	struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "full"};
	int ul = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(bind(ul, (struct sockaddr *)&u, sizeof u) == 0 && listen(ul, 0) == 0);
	int c = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(connect(c, (struct sockaddr *)&u, sizeof u) == 0);
	c = socket(AF_UNIX, SOCK_STREAM, 0);
	timeout(c, SO_SNDTIMEO, 20);
	SHOW(connect(c, (struct sockaddr *)&u, sizeof u));
	timeout(c, SO_SNDTIMEO, 10000);
	with_timer(1);
	SHOW(connect(c, (struct sockaddr *)&u, sizeof u));
	CHECK(accept(ul, NULL, NULL) >= 0);
	SHOW(connect(c, (struct sockaddr *)&u, sizeof u));
	CHECK(unlink("full") == 0);
	return 0;
}
