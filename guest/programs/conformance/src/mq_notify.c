// mq_notify: by signal, by thread, with no notification; the condition for it, and the end of a registration.
// link: -lrt
#include "conformance.h"

#include <mqueue.h>

static mqd_t q;

static mqd_t make(void)
{
	char name[64];
	snprintf(name, sizeof name, "/heddle-mqn-%d", getpid());
	mqd_t m = mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &(struct mq_attr){.mq_maxmsg = 4, .mq_msgsize = 16});
	CHECK(m >= 0 && mq_unlink(name) == 0);
	return m;
}

static void state(const char *when)
{
	char text[128];
	int size, notify, signal, pid;
	ssize_t n = pread(q, text, sizeof text - 1, 0);
	CHECK(n > 0);
	text[n] = 0;
	CHECK(sscanf(text, "QSIZE:%d NOTIFY:%d SIGNO:%d NOTIFY_PID:%d", &size, &notify, &signal, &pid) == 4);
	printf("%s: size %d, kind %d, signal %d, %s\n", when, size, notify, signal, pid == getpid() ? "me" : pid == 0 ? "none" : "another");
}

static void drain(void)
{
	char buf[16];
	while (mq_receive(q, buf, sizeof buf, NULL) >= 0)
		;
	CHECK(errno == EAGAIN);
}

static struct sigevent by_signal(int sig)
{
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
	e.sigev_value.sival_int = 4711;
	return e;
}

static void show_pending(sigset_t *set)
{
	siginfo_t i;
	struct timespec none = {0, 0};
	int s = sigtimedwait(set, &i, &none);
	if (s < 0)
		printf("no signal\n");
	else
		printf("signal %s, code %s, value %d, from %s, user %d\n", sigabbrev_np(s), i.si_code == SI_MESGQ ? "SI_MESGQ" : "?",
		       i.si_value.sival_int, i.si_pid == getpid() ? "me" : "another", i.si_uid == getuid());
}

static void by_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	struct sigevent e = by_signal(SIGUSR1), none = {.sigev_notify = SIGEV_NONE};
	q = make();
	state("new");
	SHOW(mq_notify(q, &e));
	state("registered");
	SHOW(mq_notify(q, &e));
	show_pending(&set);
	CHECK(mq_send(q, "x", 1, 0) == 0);
	show_pending(&set);
	state("notified");
	CHECK(mq_send(q, "y", 1, 0) == 0);
	show_pending(&set);
	SHOW(mq_notify(q, &e)); // the queue is not empty
	CHECK(mq_send(q, "z", 1, 0) == 0);
	show_pending(&set);
	drain();
	CHECK(mq_send(q, "x", 1, 0) == 0);
	show_pending(&set);
	drain();
	SHOW(mq_notify(q, &e));
	SHOW(mq_notify(q, NULL));
	SHOW(mq_notify(q, NULL));
	state("taken back");
	CHECK(mq_send(q, "x", 1, 0) == 0);
	show_pending(&set);
	drain();
	SHOW(mq_notify(q, &none));
	state("none");
	SHOW(mq_notify(q, &e));
	CHECK(mq_send(q, "x", 1, 0) == 0);
	state("none, notified");
	drain();
	e.sigev_signo = 0;
	SHOW(mq_notify(q, &e));
	CHECK(mq_send(q, "x", 1, 0) == 0);
	state("signal 0, notified");
	drain();
	e.sigev_signo = 65;
	SHOW(mq_notify(q, &e));
	e.sigev_signo = -1;
	SHOW(mq_notify(q, &e));
	e.sigev_notify = 77;
	SHOW(mq_notify(q, &e));
	SHOW(mq_notify(0, NULL));
	SHOW(mq_notify(-1, &none));
	SHOW(syscall(SYS_mq_notify, q, 8));
	CHECK(mq_close(q) == 0);
}

static void others(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	struct sigevent e = by_signal(SIGUSR1);
	q = make();
	// Another process has registered.
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(mq_notify(q, &e) == 0);
		CHECK(write(fd[1], "x", 1) == 1);
		siginfo_t i;
		CHECK(sigwaitinfo(&set, &i) == SIGUSR1);
		printf("child: from the parent %d\n", i.si_pid == getppid());
		CHECK(mq_notify(q, &e) == 0);
		_exit(0); // which ends the registration
	}
	char c;
	CHECK(read(fd[0], &c, 1) == 1);
	state("another");
	SHOW(mq_notify(q, &e));
	SHOW(mq_notify(q, NULL));
	CHECK(mq_send(q, "x", 1, 0) == 0);
	wait_for(pid);
	state("after the child");
	drain();
	// Any close of a descriptor by the process ends the registration.
	SHOW(mq_notify(q, &e));
	int copy = dup(q);
	CHECK(close(copy) == 0);
	state("closed a copy");
	// A waiting receiver gets the message, and no notification is sent.
	SHOW(mq_notify(q, &e));
	struct mq_attr blocking = {.mq_flags = 0};
	CHECK(mq_setattr(q, &blocking, NULL) == 0);
	pid = fork();
	if (pid == 0) {
		char buf[16];
		CHECK(mq_receive(q, buf, 16, NULL) == 1);
		_exit(0);
	}
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	do
		CHECK(read_file(path, text, sizeof text) > 0);
	while (strstr(text, ") S ") == NULL);
	CHECK(mq_send(q, "x", 1, 0) == 0);
	wait_for(pid);
	state("a receiver was there");
	show_pending(&set);
	CHECK(mq_close(q) == 0);
}

static atomic_int ran;

static void function(union sigval v)
{
	printf("function: value %d, main thread %d\n", v.sival_int, gettid() == getpid());
	char buf[16];
	CHECK(mq_receive(q, buf, sizeof buf, NULL) >= 0);
	atomic_fetch_add(&ran, 1);
}

static void by_thread(void)
{
	q = make();
	struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = function};
	for (int i = 0; i < 3; i++) {
		e.sigev_value.sival_int = i;
		SHOW(mq_notify(q, &e));
		SHOW(mq_notify(q, &e));
		CHECK(mq_send(q, "x", 1, 0) == 0);
		while (atomic_load(&ran) == i)
			nap();
	}
	SHOW(mq_notify(q, &e));
	state("thread");
	SHOW(mq_notify(q, NULL));
	CHECK(mq_send(q, "x", 1, 0) == 0);
	state("thread, taken back");
	drain();
	pthread_attr_t attr;
	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 256 << 10) == 0);
	e.sigev_notify_attributes = &attr;
	SHOW(mq_notify(q, &e));
	CHECK(mq_send(q, "x", 1, 0) == 0);
	while (atomic_load(&ran) == 3)
		nap();
	CHECK(mq_close(q) == 0);
}

static void raw(void)
{
	q = make();
	char cookie[32] = "cookie";
	struct sigevent e = {.sigev_notify = SIGEV_THREAD};
	e.sigev_value.sival_ptr = cookie;
	e.sigev_signo = 99;
	SHOW(syscall(SYS_mq_notify, q, &e));
	e.sigev_signo = q;
	SHOW(syscall(SYS_mq_notify, q, &e));
	e.sigev_value.sival_ptr = (void *)8;
	SHOW(syscall(SYS_mq_notify, q, &e));
	CHECK(mq_close(q) == 0);
}

int main(void)
{
	by_signals();
	others();
	by_thread();
	raw();
	return 0;
}
