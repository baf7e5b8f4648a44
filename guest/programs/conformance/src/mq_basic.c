// POSIX message queues: opening, attributes, limits, priorities, errors, names.
// link: -lrt
#include "conformance.h"

#include <mqueue.h>
#include <poll.h>

static char name[64];

static void show_attr(const char *what, mqd_t q)
{
	struct mq_attr a;
	CHECK(mq_getattr(q, &a) == 0);
	printf("%s: flags %lo, %ld of %ld messages of %ld\n", what, a.mq_flags, a.mq_curmsgs, a.mq_maxmsg, a.mq_msgsize);
}

static void get(mqd_t q)
{
	char buf[100];
	unsigned prio = 77;
	ssize_t n = mq_receive(q, buf, sizeof buf, &prio);
	if (n < 0)
		printf("receive: %s\n", errname(errno));
	else
		printf("receive: %.*s with %u\n", (int)n, buf, prio);
}

static void put(mqd_t q, const char *text, unsigned prio)
{
	printf("send %s with %u: ", text, prio);
	printf("%s\n", mq_send(q, text, strlen(text), prio) == 0 ? "ok" : errname(errno));
}

static void opening(void)
{
	struct mq_attr a = {.mq_maxmsg = 3, .mq_msgsize = 100};
	SHOW(mq_open(name, O_RDWR));
	SHOW(mq_open(name + 1, O_RDWR | O_CREAT, 0600, NULL));
	SHOW(mq_open("/", O_RDWR | O_CREAT, 0600, NULL));
	SHOW(mq_open("//x", O_RDWR | O_CREAT, 0600, NULL));
	SHOW(mq_open("/a/b", O_RDWR | O_CREAT, 0600, NULL));
	SHOW(mq_open("/.", O_RDWR | O_CREAT, 0600, NULL));
	SHOW(mq_open("/..", O_RDWR, 0600, NULL));
	char longer[400] = "/";
	memset(longer + 1, 'x', 256);
	SHOW(mq_open(longer, O_RDWR | O_CREAT, 0600, NULL));
	SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, (struct mq_attr *)8));
	a.mq_maxmsg = 0;
	SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
	a.mq_maxmsg = -1;
	SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
	a.mq_maxmsg = 3;
	a.mq_msgsize = 0;
	SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
	a.mq_msgsize = 1L << 40;
	SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
	a.mq_msgsize = 100;
	mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0640, &a);
	CHECK(q >= 0);
	show_attr("new", q);
	printf("close on exec: %d\n", fcntl(q, F_GETFD));
	SHOW(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0640, &a));
	SHOW(mq_open(name, O_RDWR | O_WRONLY));
	a.mq_maxmsg = 9;
	mqd_t r = mq_open(name, O_RDONLY | O_CREAT | O_NONBLOCK, 0, &a);
	show_attr("again", r);
	mqd_t w = mq_open(name, O_WRONLY);
	put(r, "x", 0);
	get(w);
	get(r);
	struct stat st;
	CHECK(fstat(q, &st) == 0);
	printf("mode %o, size %ld, links %ld\n", st.st_mode, (long)st.st_size, (long)st.st_nlink);
	SHOW(mq_close(r));
	SHOW(mq_close(w));
	SHOW(mq_close(q));
	SHOW(mq_close(q));
	SHOW(mq_unlink(name));
	SHOW(mq_unlink(name));
	SHOW(mq_unlink(name + 1));
	SHOW(mq_unlink("/a/b"));
	q = mq_open(name, O_RDWR | O_CREAT, 0600, NULL);
	show_attr("usual", q);
	SHOW(mq_unlink(name));
	mqd_t other = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	put(other, "other", 1);
	show_attr("without a name", q);
	show_attr("with its name", other);
	SHOW(mq_close(q));
	SHOW(mq_close(other));
	SHOW(mq_unlink(name));
}

static void priorities(void)
{
	struct mq_attr a = {.mq_maxmsg = 6, .mq_msgsize = 10};
	mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &a);
	CHECK(q >= 0 && mq_unlink(name) == 0);
	put(q, "low", 1);
	put(q, "high", 9);
	put(q, "low2", 1);
	put(q, "", 32767);
	put(q, "high2", 9);
	put(q, "no", 32768);
	put(q, "elevenbytes", 1);
	put(q, "ten  bytes", 0);
	put(q, "full", 0);
	show_attr("full", q);
	char text[128] = "";
	struct pollfd p = {.fd = q, .events = POLLIN | POLLOUT};
	SHOW(poll(&p, 1, 0));
	printf("events %x\n", p.revents);
	ssize_t n = read(q, text, sizeof text - 1);
	printf("%zd bytes: %s", n, text);
	SHOW(read(q, text, 10));
	SHOW(lseek(q, 0, SEEK_SET));
	SHOW(read(q, text, 10));
	SHOW(write(q, "x", 1));
	SHOW((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, q, 0));
	SHOW(mq_receive(q, text, 9, NULL));
	for (int i = 0; i < 7; i++)
		get(q);
	SHOW(poll(&p, 1, 0));
	printf("events %x\n", p.revents);
	put(q, "x", 5);
	SHOW(poll(&p, 1, 0));
	printf("events %x\n", p.revents);
	SHOW(mq_receive(q, (char *)8, 10, NULL));
	show_attr("after a bad address", q);
	SHOW(mq_send(q, (char *)8, 10, 0));
	struct mq_attr set = {.mq_flags = O_NONBLOCK | O_APPEND}, old;
	SHOW(mq_setattr(q, &set, &old));
	set.mq_flags = 0;
	set.mq_maxmsg = 99;
	SHOW(mq_setattr(q, &set, &old));
	printf("flags were %lo\n", old.mq_flags);
	show_attr("set", q);
	printf("flags %o\n", fcntl(q, F_GETFL) & O_NONBLOCK);
	SHOW(mq_setattr(q, (void *)8, NULL));
	SHOW(mq_getattr(q, (void *)8));
	SHOW(mq_getattr(0, &old));
	SHOW(mq_getattr(-1, &old));
	SHOW(mq_send(0, "x", 1, 0));
	SHOW(mq_receive(0, text, 100, NULL));
	CHECK(mq_close(q) == 0);
}

static void limits(void)
{
	// The queues of a user have a total limit.
	struct rlimit l = {10000, 10000};
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(setrlimit(RLIMIT_MSGQUEUE, &l) == 0);
		struct mq_attr a = {.mq_maxmsg = 10, .mq_msgsize = 905};
		SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, &a));
		SHOW(mq_open(name, O_RDWR));
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
	char text[64];
	for (int i = 0; i < 5; i++) {
		static const char *const files[] = {"msg_default", "msg_max", "msgsize_default", "msgsize_max", "queues_max"};
		char path[64];
		snprintf(path, sizeof path, "/proc/sys/fs/mqueue/%s", files[i]);
		CHECK(read_file(path, text, sizeof text) > 0);
		printf("%s %s", files[i], text);
	}
}

static void inherited(void)
{
	mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, &(struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 20});
	CHECK(q >= 0 && mq_unlink(name) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		put(q, "from the child", 3);
		_exit(0);
	}
	wait_for(pid);
	get(q);
}

int main(void)
{
	snprintf(name, sizeof name, "/heddle-mq-%d", getpid());
	opening();
	priorities();
	limits();
	inherited();
	return 0;
}
