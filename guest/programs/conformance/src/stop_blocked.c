// A process stopped and continued in the middle of a blocking call: sleeps, waits and reads continue.
#include "conformance.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>

static int ends[2];
static sem_t *sem;

static long do_nanosleep(void)
{
	struct timespec t = {0, 8 * MSEC};
	return nanosleep(&t, NULL);
}

static long do_clock(void)
{
	struct timespec t = after(CLOCK_MONOTONIC, 8 * MSEC);
	int r = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	CHECK(now(CLOCK_MONOTONIC) >= to_ns(t));
	return r;
}

static long do_poll(void)
{
	return poll(NULL, 0, 8);
}

static long do_read(void)
{
	char c;
	return read(ends[0], &c, 1);
}

static long do_sem(void)
{
	return sem_wait(sem);
}

static void wake_read(void) { CHECK(write(ends[1], "x", 1) == 1); }
static void wake_sem(void) { CHECK(sem_post(sem) == 0); }

static void try(const char *what, long (*call)(void), void (*wake)(void))
{
	pid_t pid = fork();
	int status;
	CHECK(pid >= 0);
	if (pid == 0) {
		int64_t begin = now(CLOCK_MONOTONIC);
		long r = call();
		int e = errno;
		if (!wake)
			CHECK(now(CLOCK_MONOTONIC) - begin >= 8 * MSEC);
		printf("%s: %s\n", what, r < 0 ? errname(e) : r > 0 ? "some" : "ok");
		_exit(0);
	}
	for (int i = 0; i < 4; i++) {
		CHECK(kill(pid, SIGSTOP) == 0);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
			break;
		CHECK(kill(pid, SIGCONT) == 0);
		CHECK(waitpid(pid, &status, WCONTINUED) == pid);
		if (!WIFCONTINUED(status))
			break;
		if (i < 3)
			nap();
		status = -1;
	}
	if (wake)
		wake();
	if (status == -1)
		status = wait_for(pid);
	CHECK(status == 0);
}

int main(void)
{
	CHECK(pipe(ends) == 0);
	sem = shared_memory(sizeof *sem);
	CHECK(sem_init(sem, 1, 0) == 0);
	try("nanosleep", do_nanosleep, NULL);
	try("clock_nanosleep", do_clock, NULL);
	try("poll", do_poll, NULL);
	try("read", do_read, wake_read);
	try("sem_wait", do_sem, wake_sem);
	return 0;
}
