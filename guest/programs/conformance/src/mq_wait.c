// Waiting at POSIX message queues: order of receivers and senders, time-outs, signals, poll, epoll, select.
// link: -lrt
#include "conformance.h"

#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

static mqd_t q;

static mqd_t make(int messages)
{
	char name[64];
	snprintf(name, sizeof name, "/heddle-mqw-%d", getpid());
	mqd_t m = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &(struct mq_attr){.mq_maxmsg = messages, .mq_msgsize = 16});
	CHECK(m >= 0 && mq_unlink(name) == 0);
	return m;
}

static struct {
	atomic_int begun, ended;
	char got[16][32];
	int order[16];
} *shared;

static int is_asleep(pid_t pid)
{
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	CHECK(read_file(path, text, sizeof text) > 0);
	return strstr(text, ") S ") != NULL;
}

// child runs f(n) in a process and returns when it sleeps there.
static pid_t child(void (*f)(int), int n)
{
	int before = atomic_load(&shared->begun);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		atomic_fetch_add(&shared->begun, 1);
		f(n);
		shared->order[atomic_fetch_add(&shared->ended, 1)] = n;
		_exit(0);
	}
	while (atomic_load(&shared->begun) == before || !is_asleep(pid))
		nap();
	return pid;
}

static void receive(int n)
{
	unsigned prio;
	char buf[16];
	ssize_t r = mq_receive(q, buf, sizeof buf, &prio);
	CHECK(r >= 0);
	snprintf(shared->got[n], 32, "%.*s/%u", (int)r, buf, prio);
}

static void send_low(int n)
{
	char text[16];
	snprintf(text, sizeof text, "blocked %d", n);
	CHECK(mq_send(q, text, strlen(text), n) == 0);
}

static void receivers(void)
{
	q = make(5);
	pid_t pid[4];
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			CHECK(nice(5) != -1 || errno == 0); // the last two have a lower priority
		pid[i] = child(receive, i);
		if (i == 2)
			printf("a less favoured one waits\n");
	}
	for (int i = 0; i < 4; i++) {
		char text[8] = {'a' + i};
		CHECK(mq_send(q, text, 1, i) == 0);
		wait_for(pid[i]);
		printf("receiver %d: %s\n", i, shared->got[i]);
	}
	CHECK(mq_close(q) == 0);
}

static void senders(void)
{
	q = make(1);
	CHECK(mq_send(q, "first", 5, 0) == 0);
	pid_t pid[3];
	for (int i = 0; i < 3; i++)
		pid[i] = child(send_low, i + 1);
	for (int i = 0; i < 4; i++) {
		char buf[16];
		unsigned prio;
		ssize_t n = mq_receive(q, buf, sizeof buf, &prio);
		CHECK(n > 0);
		printf("received %.*s with %u\n", (int)n, buf, prio);
	}
	for (int i = 0; i < 3; i++)
		printf("sender: %s\n", status_text(wait_for(pid[i])));
	CHECK(mq_close(q) == 0);
}

static void timeouts(void)
{
	q = make(1);
	char buf[16];
	struct timespec t = after(CLOCK_REALTIME, 3 * MSEC), past = {1, 0}, bad = {1, SEC}, negative = {-1, 0};
	SHOW(mq_timedreceive(q, buf, 16, NULL, &t));
	CHECK(now(CLOCK_REALTIME) >= to_ns(t));
	SHOW(mq_timedreceive(q, buf, 16, NULL, &past));
	SHOW(mq_timedreceive(q, buf, 16, NULL, &bad));
	SHOW(mq_timedreceive(q, buf, 16, NULL, &negative));
	SHOW(mq_timedreceive(q, buf, 16, NULL, (void *)8));
	SHOW(mq_timedsend(q, "x", 1, 0, &bad));
	SHOW(mq_timedsend(q, "x", 1, 0, &past));
	SHOW(mq_timedsend(q, "x", 1, 0, &past));
	t = after(CLOCK_REALTIME, 3 * MSEC);
	SHOW(mq_timedsend(q, "x", 1, 0, &t));
	SHOW(mq_timedreceive(q, buf, 16, NULL, &past));
	CHECK(mq_close(q) == 0);
}

static volatile sig_atomic_t signals;

static void on_alarm(int sig)
{
	(void)sig;
	if (++signals == 3)
		CHECK(mq_send(q, "woken", 5, 0) == 0);
}

static void interrupted(void)
{
	q = make(1);
	char buf[16];
	struct itimerval every = {{0, 3000}, {0, 3000}}, none = {{0, 0}, {0, 0}};
	on_signal(SIGALRM, on_alarm, 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	SHOW(mq_receive(q, buf, 16, NULL));
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	signals = 0;
	on_signal(SIGALRM, on_alarm, SA_RESTART);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	SHOW(mq_receive(q, buf, 16, NULL)); // is restarted until the third signal
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	CHECK(signals >= 3 && mq_close(q) == 0);
}

static void *sends_later(void *arg)
{
	(void)arg;
	nap();
	CHECK(mq_send(q, "x", 1, 0) == 0);
	return NULL;
}

static void *receives_later(void *arg)
{
	char buf[16];
	(void)arg;
	nap();
	CHECK(mq_receive(q, buf, 16, NULL) == 1);
	return NULL;
}

static void polling(void)
{
	q = make(1);
	struct pollfd p = {.fd = q, .events = POLLIN};
	SHOW(poll(&p, 1, 1));
	pthread_t t = start(sends_later, NULL);
	SHOW(poll(&p, 1, -1));
	printf("events %x\n", p.revents);
	finish(t);
	p.events = POLLOUT;
	SHOW(poll(&p, 1, 0));
	t = start(receives_later, NULL);
	SHOW(poll(&p, 1, -1));
	printf("events %x\n", p.revents);
	finish(t);
	int ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = 5}, out[2];
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, q, &e));
	SHOW(epoll_wait(ep, out, 2, 0));
	t = start(sends_later, NULL);
	SHOW(epoll_wait(ep, out, 2, -1));
	printf("events %x, data %u\n", out[0].events, out[0].data.u32);
	finish(t);
	SHOW(epoll_wait(ep, out, 2, 0));
	fd_set set, write;
	FD_ZERO(&set);
	FD_ZERO(&write);
	FD_SET(q, &set);
	FD_SET(q, &write);
	SHOW(select(q + 1, &set, &write, NULL, NULL));
	printf("readable %d, writable %d\n", FD_ISSET(q, &set) != 0, FD_ISSET(q, &write) != 0);
	CHECK(mq_close(q) == 0);
}

// many passes messages from four producers to two consumers.
static void many(void)
{
	q = make(3);
	pid_t pid[6];
	for (int i = 0; i < 6; i++) {
		pid[i] = fork();
		if (pid[i] != 0)
			continue;
		long sum = 0;
		for (int k = 1; i < 4 ? k <= 50 : k <= 100; k++) {
			char buf[16];
			if (i < 4) {
				snprintf(buf, sizeof buf, "%d", k);
				CHECK(mq_send(q, buf, strlen(buf) + 1, k % 3) == 0);
			} else {
				CHECK(mq_receive(q, buf, sizeof buf, NULL) > 0);
				sum += atoi(buf);
			}
		}
		if (i >= 4)
			shared->order[i] = sum;
		_exit(0);
	}
	for (int i = 0; i < 6; i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("sum %d\n", shared->order[4] + shared->order[5]);
}

int main(void)
{
	shared = shared_memory(sizeof *shared);
	senders();
	timeouts();
	interrupted();
	polling();
	many();
	receivers();
	return 0;
}
