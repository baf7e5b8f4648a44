// Shared by all conformance programs: checks, result printing, and short
// forms of calls that nearly all of them make.
//
// A program prints only output that is the same on every run of every correct
// Linux: results and errno names, never addresses, ids or times. It CHECKs the
// values that it cannot print.
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define MSEC 1000000L
#define SEC 1000000000L

// CHECK ends the process with status 1 and names the place when e is false.
#define CHECK(e) ((e) ? (void)0 : check_failed(__FILE__, __LINE__, #e, errno))

// OK checks a call that returns 0 or an error number, as pthread calls do.
#define OK(call)                                                        \
	do {                                                            \
		int ok_ = (call);                                       \
		if (ok_ != 0)                                           \
			check_failed(__FILE__, __LINE__, #call, ok_);   \
	} while (0)

// SHOW prints a call that returns -1 and errno on failure, and its result.
#define SHOW(call)                                                      \
	do {                                                            \
		errno = 0;                                              \
		show_result(#call, (long)(call));                       \
	} while (0)

// SHOWE prints a call that returns 0 or an error number, and its result.
#define SHOWE(call) show_error(#call, (call))

static inline const char *errname(int e)
{
	const char *s = e == 0 ? "ok" : strerrorname_np(e);
	return s ? s : "unknown errno";
}

static inline void check_failed(const char *file, int line, const char *what, int err)
{
	fflush(stdout);
	dprintf(2, "%s:%d: %s (%s)\n", file, line, what, errname(err));
	_exit(1);
}

static inline void show_result(const char *call, long r)
{
	if (r == -1)
		printf("%s: %s\n", call, errname(errno));
	else
		printf("%s: %ld\n", call, r);
}

static inline void show_error(const char *call, int e)
{
	printf("%s: %s\n", call, errname(e));
}

// Output is line-buffered, also to a file or pipe, so that fork never copies it
// and a death by signal never loses it.
__attribute__((constructor)) static void line_buffered(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline pthread_t start(void *(*f)(void *), void *arg)
{
	pthread_t t;
	OK(pthread_create(&t, NULL, f, arg));
	return t;
}

static inline void *finish(pthread_t t)
{
	void *r = NULL;
	OK(pthread_join(t, &r));
	return r;
}

static inline int64_t to_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * SEC + t.tv_nsec;
}

static inline struct timespec from_ns(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / SEC, .tv_nsec = ns % SEC};
}

static inline int64_t now(clockid_t c)
{
	struct timespec t;
	CHECK(clock_gettime(c, &t) == 0);
	return to_ns(t);
}

// after is the absolute time ns from now on clock c.
static inline struct timespec after(clockid_t c, int64_t ns)
{
	return from_ns(now(c) + ns);
}

// nap gives other threads time to run. It makes an interesting interleaving likely;
// no program's output may depend on it.
static inline void nap(void)
{
	struct timespec t = {0, MSEC / 2};
	nanosleep(&t, NULL);
}

static inline void *shared_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static inline void no_core(void)
{
	struct rlimit none = {0, 0};
	CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
}

// wait_for reaps one child and returns its wait status.
static inline int wait_for(pid_t pid)
{
	int status = 0;
	pid_t r;
	while ((r = waitpid(pid, &status, 0)) == -1 && errno == EINTR)
		;
	CHECK(r == pid);
	return status;
}

// status_text describes a wait status; the text is valid until the next
// call on the same thread.
static inline const char *status_text(int status)
{
	static _Thread_local char buf[64];
	if (WIFEXITED(status))
		snprintf(buf, sizeof buf, "exit %d", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		snprintf(buf, sizeof buf, "signal %s", sigabbrev_np(WTERMSIG(status)));
	else if (WIFSTOPPED(status))
		snprintf(buf, sizeof buf, "stopped %s", sigabbrev_np(WSTOPSIG(status)));
	else if (WIFCONTINUED(status))
		snprintf(buf, sizeof buf, "continued");
	else
		snprintf(buf, sizeof buf, "status %#x", status);
	return buf;
}

static inline void on_signal(int sig, void (*f)(int), int flags)
{
	struct sigaction sa = {.sa_handler = f, .sa_flags = flags};
	CHECK(sigaction(sig, &sa, NULL) == 0);
}

static inline void on_siginfo(int sig, void (*f)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = {.sa_sigaction = f, .sa_flags = flags | SA_SIGINFO};
	CHECK(sigaction(sig, &sa, NULL) == 0);
}

// write_file makes path hold exactly text.
static inline void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(close(fd) == 0);
}

// read_file reads at most n-1 bytes of path and ends them with a zero byte.
static inline ssize_t read_file(const char *path, char *buf, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	size_t got = 0;
	while (got < n - 1) {
		ssize_t r = read(fd, buf + got, n - 1 - got);
		CHECK(r >= 0);
		if (r == 0)
			break;
		got += r;
	}
	CHECK(close(fd) == 0);
	buf[got] = 0;
	return got;
}

#endif
