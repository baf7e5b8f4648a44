// The inotify events of each call on files and folders, in watches of the folder and of the object itself.
#include "inotify.h"

#include <sys/sendfile.h>

static void contents(void)
{
	char b[10];
	int f = open("d/f", O_CREAT | O_RDWR, 0644);
	events("create");
	CHECK(write(f, "hello", 5) == 5);
	events("write");
	CHECK(pread(f, b, 5, 0) == 5);
	events("pread");
	CHECK(pread(f, b, 5, 100) == 0 && read(f, b, 0) == 0 && write(f, b, 0) == 0);
	events("nothing moved");
	CHECK(ftruncate(f, 3) == 0);
	events("ftruncate");
	CHECK(ftruncate(f, 3) == 0);
	events("ftruncate to the same");
	CHECK(truncate("d/f", 9) == 0);
	events("truncate");
	CHECK(fchmod(f, 0600) == 0);
	events("fchmod");
	CHECK(fchown(f, -1, -1) == 0);
	events("fchown of nothing");
	CHECK(fchown(f, getuid(), -1) == 0);
	events("fchown");
	CHECK(futimens(f, NULL) == 0);
	events("futimens");
	struct timespec t[2] = {{1, 0}, {1, UTIME_OMIT}};
	CHECK(futimens(f, t) == 0);
	events("time of access");
	t[0].tv_nsec = UTIME_OMIT;
	t[1].tv_nsec = 5;
	CHECK(futimens(f, t) == 0);
	events("time of modification");
	t[1].tv_nsec = UTIME_OMIT;
	CHECK(futimens(f, t) == 0);
	events("no time");
	CHECK(fallocate(f, 0, 0, 100) == 0);
	events("fallocate");
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	CHECK(p != MAP_FAILED);
	*(volatile char *)p = 1;
	events("mapped");
	watch("d/f", IN_ALL_EVENTS, "f");
	CHECK(write(f, "x", 1) == 1);
	events("both watched");
	CHECK(close(f) == 0);
	events("closed, but mapped");
	CHECK(munmap(p, 4096) == 0);
	events("unmapped");
	f = open("d/f", O_RDONLY);
	events("open");
	int g = dup(f);
	CHECK(close(f) == 0);
	events("close of one");
	CHECK(close(g) == 0);
	events("close");
	f = open("d/f", O_PATH);
	CHECK(f >= 0 && close(f) == 0);
	events("O_PATH");
	struct stat st;
	CHECK(stat("d/f", &st) == 0 && access("d/f", R_OK) == 0);
	events("stat");
}

static void names(void)
{
	CHECK(link("d/f", "d/g") == 0);
	events("link");
	CHECK(link("d/f", "e/h") == 0);
	events("link elsewhere");
	CHECK(unlink("d/g") == 0);
	events("unlink");
	int f = open("e/h", O_RDONLY);
	CHECK(f >= 0 && close(f) == 0);
	events("by the other name");
	CHECK(rename("d/f", "d/k") == 0);
	events("rename");
	CHECK(rename("d/k", "e/k") == 0);
	events("rename elsewhere");
	CHECK(unlink("e/h") == 0);
	events("unlink");
	CHECK(symlink("x", "d/s") == 0);
	events("symlink");
	CHECK(unlink("d/s") == 0);
	events("unlink of it");
	CHECK(rename("e/k", "out") == 0);
	events("moved away");
	CHECK(rename("out", "d/in") == 0);
	events("moved in");
	make_file("d/a");
	make_file("d/b");
	watch("d/a", IN_ALL_EVENTS, "a");
	watch("d/b", IN_ALL_EVENTS, "b");
	events("two files");
	CHECK(rename("d/a", "d/b") == 0);
	events("rename over another");
	make_file("d/c");
	watch("d/c", IN_ALL_EVENTS, "c");
	events("another");
	CHECK(renameat2(AT_FDCWD, "d/b", AT_FDCWD, "d/c", RENAME_EXCHANGE) == 0);
	events("exchange");
	CHECK(rename("d/b", "d/b") == 0);
	events("rename to itself");
	f = open("d/b", O_RDWR);
	events("open");
	CHECK(unlink("d/b") == 0);
	events("unlink of an open file");
	CHECK(write(f, "x", 1) == 1);
	events("write without a name");
	CHECK(close(f) == 0);
	events("close without a name");
	CHECK(unlink("d/c") == 0 && unlink("d/in") == 0);
	events("unlink of the others");
	CHECK(mkfifo("d/fifo", 0644) == 0);
	events("mkfifo");
	f = open("d/fifo", O_RDWR);
	events("open of it");
	CHECK(close(f) == 0 && unlink("d/fifo") == 0);
	events("its end");
}

static void folders(void)
{
	char b[4096];
	CHECK(mkdir("d/sub", 0755) == 0);
	events("mkdir");
	watch("d/sub", IN_ALL_EVENTS, "sub");
	int f = open("d/sub", O_RDONLY);
	events("open of a folder");
	CHECK(syscall(SYS_getdents64, f, b, sizeof b) > 0);
	events("getdents");
	CHECK(syscall(SYS_getdents64, f, b, sizeof b) == 0);
	events("getdents at the end");
	CHECK(chmod("d/sub", 0700) == 0);
	events("chmod of a folder");
	CHECK(rename("d/sub", "e/sub") == 0);
	events("rename of a folder");
	CHECK(rmdir("e/sub") == 0);
	events("rmdir of an open folder");
	CHECK(close(f) == 0);
	events("close");
	CHECK(mkdir("d/sub", 0755) == 0);
	watch("d/sub", IN_ALL_EVENTS, "second");
	events("again");
	CHECK(rmdir("d/sub") == 0);
	events("rmdir");
	CHECK(chmod("d", 0700) == 0);
	events("chmod of the watched folder");
	CHECK(rename("d", "d2") == 0);
	events("rename of the watched folder");
	make_file("d2/x");
	events("in the renamed folder");
	CHECK(rename("d2", "d") == 0 && unlink("d/x") == 0);
	events("and back");
	// A file without a name keeps the folder that it was in.
	f = open("d/y", O_CREAT | O_RDWR, 0600);
	CHECK(f >= 0 && unlink("d/y") == 0 && mkdir("z", 0755) == 0 && rename("z", "e/z") == 0);
	int g = open("e/z/w", O_CREAT | O_RDWR, 0600);
	watch("e/z", IN_ALL_EVENTS, "z");
	CHECK(g >= 0 && unlink("e/z/w") == 0 && rmdir("e/z") == 0);
	events("folder without a name");
	CHECK(close(g) == 0);
	events("its last file");
	CHECK(close(f) == 0);
	events("close");
}

static void transfers(void)
{
	make_file("d/from");
	CHECK(truncate("d/from", 100) == 0);
	int in = open("d/from", O_RDONLY), out = open("e/to", O_CREAT | O_WRONLY, 0644), ends[2];
	loff_t at = 0;
	events("opened");
	CHECK(sendfile(out, in, NULL, 10) == 10);
	events("sendfile");
	CHECK(copy_file_range(in, &at, out, NULL, 10, 0) == 10);
	events("copy_file_range");
	CHECK(pipe(ends) == 0 && splice(in, &at, ends[1], NULL, 10, 0) == 10);
	events("splice from the file");
	CHECK(splice(ends[0], NULL, out, NULL, 10, 0) == 10);
	events("splice to the file");
	CHECK(close(in) == 0 && close(out) == 0);
	events("closed");
	CHECK(unlink("d/from") == 0 && unlink("e/to") == 0);
	events("removed");
	int f = open("d", O_TMPFILE | O_RDWR, 0600);
	CHECK(f >= 0 || errno == EOPNOTSUPP);
	if (f >= 0) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", f);
		CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "d/t", AT_SYMLINK_FOLLOW) == 0);
		CHECK(close(f) == 0 && unlink("d/t") == 0);
	}
	events("a file that gets a name");
}

int main(void)
{
	inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	CHECK(inotify_fd >= 0 && mkdir("d", 0755) == 0 && mkdir("e", 0755) == 0);
	watch("d", IN_ALL_EVENTS, "d");
	watch("e", IN_ALL_EVENTS, "e");
	contents();
	names();
	folders();
	transfers();
	CHECK(rmdir("e") == 0 && rmdir("d") == 0);
	events("the end");
	return 0;
}
