// Reading a terminal by bytes: VMIN and VTIME, poll, FIONREAD, processing of output, big transfers.
#include "terminal.h"

#include <sys/epoll.h>

static void raw(int min, int time)
{
	struct termios t = get_termios(slave_fd);
	cfmakeraw(&t);
	t.c_cc[VMIN] = min;
	t.c_cc[VTIME] = time;
	CHECK(tcsetattr(slave_fd, TCSANOW, &t) == 0);
	CHECK(fcntl(slave_fd, F_SETFL, 0) == 0);
}

static void type_later(const char *text, int delay_ms)
{
	struct timespec t = {0, delay_ms * MSEC};
	nanosleep(&t, NULL);
	CHECK(write(master_fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static const char *const parts[] = {"ab", "cd", "ef"};

static void *typist(void *arg)
{
	for (int i = 0; i < (long)arg; i++)
		type_later(parts[i], 2);
	return NULL;
}

static void show_read(const char *what, size_t n)
{
	char b[300];
	ssize_t r = read(slave_fd, b, n);
	printf("%s: ", what);
	if (r < 0)
		printf("%s\n", errname(errno));
	else {
		quote(b, r);
		printf("\n");
	}
}

static void reads(void)
{
	raw(0, 0);
	show_read("nothing waits, MIN 0 TIME 0", 10);
	CHECK(write(master_fd, "abc", 3) == 3);
	show_read("three wait", 10);
	raw(0, 1);
	int64_t begin = now(CLOCK_MONOTONIC);
	show_read("MIN 0 TIME 1, nothing", 10);
	CHECK(now(CLOCK_MONOTONIC) - begin >= 90 * MSEC);
	CHECK(write(master_fd, "x", 1) == 1);
	show_read("MIN 0 TIME 1, something", 10);
	raw(1, 0);
	pthread_t t = start(typist, (void *)1L);
	show_read("MIN 1", 10);
	finish(t);
	raw(6, 0);
	t = start(typist, (void *)3L);
	show_read("MIN 6", 10);
	finish(t);
	raw(6, 0);
	t = start(typist, (void *)2L);
	show_read("MIN 6 of 3", 3);
	finish(t);
	raw(0, 0);
	show_read("the rest", 10);
	raw(6, 1);
	t = start(typist, (void *)2L);
	show_read("MIN 6 TIME 1, four come", 10);
	finish(t);
	t = start(typist, (void *)3L);
	show_read("MIN 6 TIME 1, six come", 10);
	finish(t);
	// A read of more than 64 bytes ends there if MIN is greater.
	char many[200];
	memset(many, 'x', sizeof many);
	raw(100, 0);
	CHECK(write(master_fd, many, 70) == 70);
	char b[300];
	printf("MIN 100, 70 wait: %zd\n", read(slave_fd, b, sizeof b));
	CHECK(fcntl(slave_fd, F_SETFL, O_NONBLOCK) == 0);
	printf("then %zd\n", read(slave_fd, b, sizeof b));
	CHECK(fcntl(slave_fd, F_SETFL, 0) == 0);
	raw(1, 0);
	CHECK(write(master_fd, many, 200) == 200);
	int waiting;
	do
		CHECK(ioctl(slave_fd, FIONREAD, &waiting) == 0);
	while (waiting < 200);
	printf("200 wait, read %zd\n", read(slave_fd, b, 150));
	printf("read %zd\n", read(slave_fd, b, 150));
	CHECK(fcntl(slave_fd, F_SETFL, O_NONBLOCK) == 0);
	show_read("without waiting", 10);
	raw(5, 5);
	CHECK(fcntl(slave_fd, F_SETFL, O_NONBLOCK) == 0);
	show_read("MIN 5 TIME 5 without waiting", 10);
}

static void polls(void)
{
	struct pollfd p = {.fd = slave_fd, .events = POLLIN | POLLOUT};
	raw(3, 0);
	SHOW(poll(&p, 1, 0));
	printf("events %x\n", p.revents);
	CHECK(write(master_fd, "ab", 2) == 2);
	SHOW(poll(&p, 1, 0));
	printf("two of three: events %x\n", p.revents);
	CHECK(write(master_fd, "c", 1) == 1);
	SHOW(poll(&p, 1, 0));
	printf("three: events %x\n", p.revents);
	raw(3, 1);
	show_read("read", 10);
	CHECK(write(master_fd, "a", 1) == 1);
	SHOW(poll(&p, 1, 0));
	printf("one with a time-out: events %x\n", p.revents);
	raw(1, 0);
	show_read("read", 10);
	int ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN | EPOLLET}, out;
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, slave_fd, &e));
	SHOW(epoll_wait(ep, &out, 1, 0));
	CHECK(write(master_fd, "a", 1) == 1);
	SHOW(epoll_wait(ep, &out, 1, -1));
	SHOW(epoll_wait(ep, &out, 1, 0));
	CHECK(close(ep) == 0);
	show_read("read", 10);
}

static void output(const char *what, tcflag_t oflag, const char *text)
{
	set_flags(0, oflag, 0);
	printf("%s: ", what);
	quote(text, strlen(text));
	CHECK(write(slave_fd, text, strlen(text)) == (ssize_t)strlen(text));
	struct pollfd p = {.fd = master_fd, .events = POLLIN};
	CHECK(poll(&p, 1, 0) >= 0);
	drain_master();
}

static void outputs(void)
{
	output("raw", 0, "a\nb\tc\rd\be\n");
	output("ONLCR", OPOST | ONLCR, "a\n\nb\r\nc\n");
	output("OCRNL", OPOST | OCRNL, "a\rb\n");
	output("ONOCR", OPOST | ONOCR, "\ra\r\rb\n\rc\r");
	output("ONLRET", OPOST | ONLRET | ONOCR, "a\n\rb\n");
	output("OCRNL and ONLRET", OPOST | OCRNL | ONLRET, "a\rb\tc\n");
	output("XTABS", OPOST | XTABS, "\r\ta\tbc\t1234567\t12345678\t\n");
	output("XTABS with backspaces", OPOST | XTABS | ONLCR, "\nabc\b\b\t|\n");
	output("OLCUC", OPOST | OLCUC, "abcXYZ\xe4\n");
	output("flags without OPOST", ONLCR | OLCUC | XTABS, "a\tb\n");
	set_flags(IUTF8, OPOST | XTABS | ONLCR, 0);
	CHECK(write(slave_fd, "\n\xc3\xa4\t|\n", 6) == 6);
	drain_master();
}

static void *reader(void *arg)
{
	static char b[10000];
	long sum = 0, n = 0;
	while (n < (long)arg) {
		struct pollfd p = {.fd = master_fd, .events = POLLIN};
		CHECK(poll(&p, 1, -1) == 1);
		ssize_t r = read(master_fd, b, sizeof b);
		CHECK(r > 0);
		for (ssize_t i = 0; i < r; i++)
			sum += (unsigned char)b[i];
		n += r;
	}
	return (void *)sum;
}

// big writes more than fits, in both directions.
static void big(void)
{
	static char b[200000];
	long want = 0;
	raw(1, 0);
	for (int i = 0; i < LEN(b); i++)
		want += (unsigned char)(b[i] = i * 7);
	pthread_t t = start(reader, (void *)(long)sizeof b);
	SHOW(write(slave_fd, b, sizeof b));
	printf("the same: %d\n", (long)finish(t) == want);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(fcntl(master_fd, F_SETFL, 0) == 0);
		CHECK(write(master_fd, b, sizeof b) == sizeof b);
		_exit(0);
	}
	long sum = 0, n = 0;
	while (n < LEN(b)) {
		char c[5000];
		ssize_t r = read(slave_fd, c, sizeof c);
		CHECK(r > 0);
		for (ssize_t i = 0; i < r; i++)
			sum += (unsigned char)c[i];
		n += r;
	}
	printf("the same: %d, %s\n", sum == want, status_text(wait_for(pid)));
}

int main(void)
{
	open_pair();
	reads();
	polls();
	outputs();
	big();
	close_pair();
	return 0;
}
