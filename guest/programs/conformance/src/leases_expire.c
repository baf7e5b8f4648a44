// When /proc/sys/fs/lease-break-time has passed, a lease is removed or downgraded; leases-enable refuses new ones.
// native: no (it would change the host's settings)
// root: yes
#include "conformance.h"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	int r = write(fd, text, strlen(text));
	int e = errno;
	CHECK(close(fd) == 0);
	errno = e;
	return r;
}

static const char break_time[] = "/proc/sys/fs/lease-break-time", enabled[] = "/proc/sys/fs/leases-enable";

static void show(const char *path)
{
	char text[40];
	CHECK(read_file(path, text, sizeof text) > 0);
	printf("%s: %s", path, text);
}

static long long seconds(int64_t ns)
{
	return (ns + SEC / 2) / SEC;
}

// Leases of the caller that it does not give up: the wait lasts for the whole break time.
static void wait_for_lease(int kind, int flags, const char *name)
{
	int f = open("f", O_RDONLY);
	CHECK(fcntl(f, F_SETLEASE, kind) == 0);
	int64_t t = now(CLOCK_MONOTONIC);
	int g = flags == -1 ? truncate("f", 1) : open("f", flags);
	CHECK(g >= 0);
	t = now(CLOCK_MONOTONIC) - t;
	printf("%s: %lld seconds, then %d, owner %d\n", name, seconds(t), fcntl(f, F_GETLEASE), fcntl(f, F_GETOWN) != 0);
	CHECK(flags == -1 || close(g) == 0);
	CHECK(close(f) == 0);
}

static void waits(void)
{
	wait_for_lease(F_RDLCK, O_WRONLY, "read, writer");
	wait_for_lease(F_RDLCK, -1, "read, truncate");
	wait_for_lease(F_WRLCK, O_RDONLY, "write, reader");
	wait_for_lease(F_WRLCK, O_RDWR | O_TRUNC, "write, writer");
}

int main(void)
{
	write_file("f", "text");
	on_signal(SIGIO, SIG_IGN, 0);
	show(break_time);
	waits();
	SHOW(put(break_time, "7\n"));
	show(break_time);
	waits();

	// A reader begins the break, a writer arrives later: each has its own time.
	int f = open("f", O_RDONLY);
	CHECK(fcntl(f, F_SETLEASE, F_WRLCK) == 0);
	SHOW(open("f", O_RDONLY | O_NONBLOCK));
	sleep(4);
	SHOW(open("f", O_WRONLY | O_NONBLOCK));
	SHOW(fcntl(f, F_GETLEASE));
	int64_t t = now(CLOCK_MONOTONIC);
	int g = open("f", O_RDONLY);
	CHECK(g >= 0);
	printf("a reader waits %lld seconds\n", seconds(now(CLOCK_MONOTONIC) - t));
	CHECK(close(g) == 0);
	g = open("f", O_WRONLY);
	printf("then a writer, until %lld seconds\n", seconds(now(CLOCK_MONOTONIC) - t));
	SHOW(fcntl(f, F_GETLEASE));
	CHECK(close(g) == 0);

	// Without a waiter, the lease is removed at the next access.
	CHECK(fcntl(f, F_SETLEASE, F_RDLCK) == 0);
	SHOW(open("f", O_WRONLY | O_NONBLOCK));
	sleep(8);
	SHOW(fcntl(f, F_SETLEASE, F_UNLCK));
	g = open("f", O_WRONLY | O_NONBLOCK);
	SHOW(g >= 0);
	SHOW(fcntl(f, F_SETLEASE, F_UNLCK));
	CHECK(close(g) == 0);

	// With a break time of 0 the holder has no limit.
	SHOW(put(break_time, "0"));
	CHECK(fcntl(f, F_SETLEASE, F_RDLCK) == 0);
	SHOW(open("f", O_WRONLY | O_NONBLOCK));
	sleep(1000);
	SHOW(open("f", O_WRONLY | O_NONBLOCK));
	SHOW(fcntl(f, F_SETLEASE, F_UNLCK));

	SHOW(put(break_time, "much"));
	SHOW(put(break_time, "99999999999"));
	show(break_time);

	SHOW(put(enabled, "0"));
	SHOW(fcntl(f, F_SETLEASE, F_RDLCK));
	SHOW(put(enabled, "1"));
	SHOW(fcntl(f, F_SETLEASE, F_RDLCK));
	SHOW(put(enabled, "0"));
	SHOW(fcntl(f, F_SETLEASE, F_WRLCK));
	CHECK(close(f) == 0);
	return 0;
}
