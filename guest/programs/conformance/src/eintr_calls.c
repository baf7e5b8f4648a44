// Every kind of blocking call under signals: EINTR without SA_RESTART; with it some calls restart and others do not.
#include "conformance.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>

static int pipe_[2], full[2], pair[2], listener, efd, ep, tfd, lock_fd, timed[2];
static pid_t child;
static char buf[4096];
static atomic_int handled, returned;
static sigset_t none, usr2;
static struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "socket"};
static int release_pipe[2];

static void handler(int sig)
{
	(void)sig;
	handled++;
}

#define CALL(name, call)                \
	static long name(void)          \
	{                               \
		return (long)(call);    \
	}

CALL(do_read, read(pipe_[0], buf, 1))
CALL(do_write, write(full[1], buf, sizeof buf))
CALL(do_recv, recv(pair[0], buf, 1, 0))
CALL(do_recv_timed, recv(timed[0], buf, 1, 0))
CALL(do_accept, accept(listener, NULL, NULL))
CALL(do_eventfd, read(efd, buf, 8))
CALL(do_timerfd, read(tfd, buf, 8))
CALL(do_fifo, open("fifo", O_RDONLY))
CALL(do_wait, waitpid(child, NULL, 0))
CALL(do_waitid, waitid(P_PID, child, &(siginfo_t){0}, WEXITED | WNOWAIT))
CALL(do_setlkw, fcntl(lock_fd, F_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}))
CALL(do_flock, flock(lock_fd, LOCK_EX))
CALL(do_poll, poll(&(struct pollfd){.fd = pipe_[0], .events = POLLIN}, 1, -1))
CALL(do_ppoll, ppoll(&(struct pollfd){.fd = pipe_[0], .events = POLLIN}, 1, &(struct timespec){100, 0}, &none))
CALL(do_select, select(0, NULL, NULL, NULL, &(struct timeval){100, 0}))
CALL(do_pselect, pselect(0, NULL, NULL, NULL, NULL, &none))
CALL(do_epoll, epoll_wait(ep, &(struct epoll_event){.events = 0}, 1, -1))
CALL(do_nanosleep, nanosleep(&(struct timespec){100, 0}, NULL))
CALL(do_pause, pause())
CALL(do_sigsuspend, sigsuspend(&none))
CALL(do_sigwaitinfo, sigwaitinfo(&usr2, NULL))
CALL(do_sigtimedwait, sigtimedwait(&usr2, NULL, &(struct timespec){100, 0}))

static long do_clock_nanosleep(void)
{
	struct timespec t = after(CLOCK_MONOTONIC, 100 * SEC);
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	return errno ? -1 : 0;
}

static void put_byte(void) { CHECK(write(pipe_[1], "x", 1) == 1); }
static void send_byte(void) { CHECK(send(pair[1], "x", 1, 0) == 1); }
static void post_event(void) { CHECK(eventfd_write(efd, 1) == 0); }
static void let_child_go(void) { CHECK(write(release_pipe[1], "x", 1) == 1); }

static void drain(void)
{
	char sink[65536];
	CHECK(read(full[0], sink, sizeof sink) > 0);
}

static void connect_to(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(s >= 0 && connect(s, (struct sockaddr *)&addr, sizeof addr) == 0);
}

static void set_timer(void)
{
	struct itimerspec it = {.it_value = {0, 1}};
	CHECK(timerfd_settime(tfd, 0, &it, NULL) == 0);
}

static void open_fifo(void)
{
	CHECK(open("fifo", O_WRONLY) >= 0);
}

static const struct {
	const char *name;
	long (*call)(void);
	void (*release)(void); // none: the call never restarts
} all[] = {
	{"read of a pipe", do_read, put_byte},
	{"write of a full pipe", do_write, drain},
	{"recv", do_recv, send_byte},
	{"recv with SO_RCVTIMEO", do_recv_timed, NULL},
	{"accept", do_accept, connect_to},
	{"eventfd", do_eventfd, post_event},
	{"timerfd", do_timerfd, set_timer},
	{"open of a FIFO", do_fifo, open_fifo},
	{"waitid", do_waitid, let_child_go},
	{"waitpid", do_wait, let_child_go},
	{"F_SETLKW", do_setlkw, let_child_go},
	{"flock", do_flock, let_child_go},
	{"poll", do_poll, NULL},
	{"ppoll", do_ppoll, NULL},
	{"select", do_select, NULL},
	{"pselect", do_pselect, NULL},
	{"epoll_wait", do_epoll, NULL},
	{"nanosleep", do_nanosleep, NULL},
	{"clock_nanosleep", do_clock_nanosleep, NULL},
	{"pause", do_pause, NULL},
	{"sigsuspend", do_sigsuspend, NULL},
	{"sigwaitinfo", do_sigwaitinfo, NULL},
	{"sigtimedwait", do_sigtimedwait, NULL},
};

static void *body(void *arg)
{
	long r = all[(intptr_t)arg].call();
	int e = r == -1 ? errno : 0;
	returned = 1;
	return (void *)(intptr_t)e;
}

// run signals the caller until it returns or, when it is to restart, five
// times, and then releases it.
static void run(int i, bool restart)
{
	on_signal(SIGUSR1, handler, restart ? SA_RESTART : 0);
	handled = returned = 0;
	pthread_t t = start(body, (void *)(intptr_t)i);
	bool restarts = restart && all[i].release;
	while (restarts ? handled < 5 : !returned) {
		pthread_kill(t, SIGUSR1);
		nap();
	}
	if (restarts)
		all[i].release();
	printf("%s, %s: %s\n", all[i].name, restart ? "SA_RESTART" : "plain", errname((intptr_t)finish(t)));
}

// fork_child makes a child that holds both locks until it is released.
static void fork_child(void)
{
	int ready[2];
	char c;
	CHECK(pipe(ready) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		int fd = open("lock", O_RDWR);
		struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		CHECK(fcntl(fd, F_SETLK, &l) == 0 && flock(fd, LOCK_EX) == 0);
		CHECK(write(ready[1], "x", 1) == 1);
		CHECK(read(release_pipe[0], &c, 1) == 1);
		_exit(0);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	CHECK(close(ready[0]) == 0 && close(ready[1]) == 0);
}

int main(void)
{
	sigemptyset(&none);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &usr2, NULL) == 0);
	CHECK(pipe(pipe_) == 0 && pipe(full) == 0 && pipe(release_pipe) == 0);
	CHECK(fcntl(full[1], F_SETFL, O_NONBLOCK) == 0);
	while (write(full[1], buf, sizeof buf) > 0)
		;
	CHECK(fcntl(full[1], F_SETFL, 0) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, timed) == 0);
	struct timeval tv = {100, 0};
	CHECK(setsockopt(timed[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) == 0);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(bind(listener, (struct sockaddr *)&addr, sizeof addr) == 0 && listen(listener, 5) == 0);
	CHECK((efd = eventfd(0, 0)) >= 0 && (ep = epoll_create1(0)) >= 0);
	CHECK((tfd = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
	struct epoll_event ev = {.events = EPOLLIN};
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, pipe_[0], &ev) == 0);
	CHECK(mkfifo("fifo", 0600) == 0 && (lock_fd = open("lock", O_RDWR | O_CREAT, 0600)) >= 0);
	fork_child();
	for (int i = 0; i < LEN(all); i++)
		run(i, false);
	for (int i = 0; i < LEN(all); i++) {
		bool with_child = all[i].release == let_child_go;
		run(i, true);
		if (!with_child)
			continue;
		struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
		CHECK(fcntl(lock_fd, F_SETLK, &l) == 0 && flock(lock_fd, LOCK_UN) == 0);
		waitpid(child, NULL, 0);
		fork_child();
	}
	let_child_go();
	CHECK(wait_for(child) == 0);
	return 0;
}
