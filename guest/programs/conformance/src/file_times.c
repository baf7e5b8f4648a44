// utimensat, futimens, utimes: exact times, UTIME_NOW, UTIME_OMIT, of links too; writes and renames update times.
#include "conformance.h"

#include <sys/time.h>
#include <utime.h>

static void show(const char *what, const char *path)
{
	struct stat st;
	CHECK(lstat(path, &st) == 0);
	printf("%s: %lld.%09ld %lld.%09ld\n", what, (long long)st.st_atim.tv_sec, st.st_atim.tv_nsec,
	       (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static struct stat get(const char *path)
{
	struct stat st;
	CHECK(lstat(path, &st) == 0);
	return st;
}

int main(void)
{
	write_file("file", "x");
	CHECK(symlink("file", "link") == 0);
	int fd = open("file", O_RDWR);
	struct timespec t[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
	SHOW(utimensat(AT_FDCWD, "file", t, 0));
	show("file", "file");
	t[0].tv_nsec = UTIME_OMIT;
	t[1] = (struct timespec){5, 6};
	SHOW(utimensat(AT_FDCWD, "file", t, 0));
	show("file", "file");
	t[0] = (struct timespec){7, 8};
	SHOW(utimensat(AT_FDCWD, "link", t, AT_SYMLINK_NOFOLLOW));
	show("link", "link");
	show("file", "file");
	SHOW(utimensat(AT_FDCWD, "link", t, 0));
	show("file", "file");
	t[0] = (struct timespec){-5, 10};
	SHOW(futimens(fd, t));
	show("before 1970", "file");
	struct timeval tv[2] = {{11, 12}, {13, 14}};
	SHOW(utimes("file", tv));
	show("utimes", "file");
	SHOW(lutimes("link", tv));
	SHOW(futimes(fd, tv));
	struct utimbuf ub = {15, 16};
	SHOW(utime("file", &ub));
	show("utime", "file");

	t[0].tv_nsec = SEC;
	SHOW(futimens(fd, t));
	t[0].tv_nsec = -1;
	SHOW(futimens(fd, t));
	t[0].tv_nsec = 0;
	SHOW(utimensat(AT_FDCWD, "missing", t, 0));
	SHOW(utimensat(AT_FDCWD, "file", t, 77));
	SHOW(utimensat(999, "file", t, 0));
	SHOW(syscall(SYS_utimensat, fd, NULL, t, 0));

	// A write sets mtime and ctime to the current time, a chmod only ctime.
	struct stat a = get("file");
	CHECK(write(fd, "y", 1) == 1);
	struct stat b = get("file");
	printf("write: mtime later %d, ctime no earlier %d\n", b.st_mtim.tv_sec > a.st_mtim.tv_sec,
	       to_ns(b.st_ctim) >= to_ns(a.st_ctim));
	CHECK(futimens(fd, (struct timespec[2]){{1, 1}, {2, 2}}) == 0);
	CHECK(chmod("file", 0600) == 0);
	a = get("file");
	printf("chmod: mtime %lld, ctime later %d\n", (long long)a.st_mtim.tv_sec, a.st_ctim.tv_sec > 2);
	t[0].tv_nsec = t[1].tv_nsec = UTIME_NOW;
	SHOW(futimens(fd, t));
	b = get("file");
	printf("now: %d\n", b.st_mtim.tv_sec > 2 && b.st_atim.tv_sec > 1);
	CHECK(futimens(fd, NULL) == 0);
	// File times are those of the realtime clock, with the precision of a tick.
	int64_t off = now(CLOCK_REALTIME) - to_ns(get("file").st_mtim);
	printf("close to the clock: %d\n", off > -SEC && off < 600 * SEC);

	// A directory's mtime changes when an entry is added or removed.
	CHECK(mkdir("dir", 0755) == 0);
	CHECK(utimensat(AT_FDCWD, "dir", (struct timespec[2]){{1, 0}, {1, 0}}, 0) == 0);
	write_file("dir/x", "");
	printf("entry made: %d\n", get("dir").st_mtim.tv_sec > 1);
	CHECK(utimensat(AT_FDCWD, "dir", (struct timespec[2]){{1, 0}, {1, 0}}, 0) == 0);
	CHECK(unlink("dir/x") == 0);
	printf("entry gone: %d\n", get("dir").st_mtim.tv_sec > 1);
	return 0;
}
