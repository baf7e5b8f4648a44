// System calls that libc no longer makes: fork, creat, lstat, utime and others, by number.
#include "conformance.h"

#include <dirent.h>
#include <sys/signalfd.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <utime.h>

static void files(void)
{
	int fd = syscall(SYS_creat, "file", 0640);
	CHECK(fd >= 0);
	SHOW(write(fd, "text", 4));
	char c;
	SHOW(read(fd, &c, 1));
	CHECK(close(fd) == 0);
	SHOW(syscall(SYS_creat, "none/file", 0600));
	CHECK(symlink("file", "link") == 0);
	struct stat st;
	SHOW(syscall(SYS_lstat, "link", &st));
	printf("%d %ld\n", S_ISLNK(st.st_mode), (long)st.st_size);
	SHOW(syscall(SYS_stat, "link", &st));
	printf("%d %o %ld\n", S_ISREG(st.st_mode), st.st_mode & 0777, (long)st.st_size);
	SHOW(syscall(SYS_faccessat, AT_FDCWD, "link", R_OK));
	SHOW(syscall(SYS_faccessat, AT_FDCWD, "none", F_OK));
	SHOW(syscall(SYS_mknod, "fifo", S_IFIFO | 0600, 0));
	SHOW(syscall(SYS_stat, "fifo", &st));
	printf("%d\n", S_ISFIFO(st.st_mode));
	SHOW(syscall(SYS_mknod, "fifo", S_IFREG | 0600, 0));
}

// entries lists a folder with linux_dirent records, which have the type at their end.
static void entries(void)
{
	CHECK(mkdir("folder", 0755) == 0 && mkdir("folder/inner", 0755) == 0 && symlink("inner", "folder/link") == 0);
	write_file("folder/file-with-a-longer-name", "");
	int fd = open("folder", O_RDONLY | O_DIRECTORY);
	char buf[512], seen[8][64] = {{0}};
	SHOW(syscall(SYS_getdents, fd, buf, 8));
	long n = syscall(SYS_getdents, fd, buf, sizeof buf);
	CHECK(n > 0);
	int count = 0;
	for (long at = 0; at < n;) {
		unsigned short size;
		memcpy(&size, buf + at + 16, 2);
		snprintf(seen[count++], sizeof seen[0], "%s %d", buf + at + 18, buf[at + size - 1]);
		CHECK(size % 8 == 0);
		at += size;
	}
	qsort(seen, count, sizeof seen[0], (int (*)(const void *, const void *))strcmp);
	for (int i = 0; i < count; i++)
		printf("%s\n", seen[i]);
	SHOW(syscall(SYS_getdents, fd, buf, sizeof buf));
	close(fd);
	fd = open("file", O_RDONLY);
	SHOW(syscall(SYS_getdents, fd, buf, sizeof buf));
	SHOW(syscall(SYS_getdents, -1, buf, sizeof buf));
	close(fd);
}

static void show_times(void)
{
	struct stat st;
	CHECK(stat("file", &st) == 0);
	printf("%ld.%09ld %ld.%09ld\n", (long)st.st_atime, st.st_atim.tv_nsec, (long)st.st_mtime, st.st_mtim.tv_nsec);
}

static void times_of_files(void)
{
	struct utimbuf u = {1000, 2000};
	SHOW(syscall(SYS_utime, "file", &u));
	show_times();
	struct timeval tv[2] = {{3000, 5}, {4000, 999999}};
	SHOW(syscall(SYS_utimes, "link", tv));
	show_times();
	tv[1].tv_usec = 1000000;
	SHOW(syscall(SYS_utimes, "file", tv));
	tv[1].tv_usec = 7;
	SHOW(syscall(SYS_futimesat, AT_FDCWD, "file", tv));
	show_times();
	SHOW(syscall(SYS_futimesat, -1, "file", tv));
	SHOW(syscall(SYS_utime, "file", NULL));
	struct stat st;
	CHECK(stat("file", &st) == 0 && st.st_mtime > 1000000);
}

static void descriptors(void)
{
	int fd = syscall(SYS_eventfd, 3);
	uint64_t n = 0;
	SHOW(read(fd, &n, 8));
	printf("%d\n", (int)n);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = syscall(SYS_signalfd, -1, &set, 8);
	CHECK(fd >= 0 && kill(getpid(), SIGUSR1) == 0);
	struct signalfd_siginfo info;
	SHOW(read(fd, &info, sizeof info));
	printf("%d\n", (int)info.ssi_signo);
	SHOW(syscall(SYS_epoll_create, 0));
	SHOW(syscall(SYS_epoll_create, 1) >= 0);
}

static void children(void)
{
	fflush(stdout);
	pid_t pid = syscall(SYS_fork);
	CHECK(pid >= 0);
	if (pid == 0)
		syscall(SYS_exit_group, 3);
	printf("%s\n", status_text(wait_for(pid)));
	SHOW(syscall(SYS_getpgrp) == getpgid(0));
	long t = syscall(SYS_time, NULL);
	CHECK(labs(t - (long)time(NULL)) <= 1);
	sync();
	int fd = open(".", O_RDONLY);
	SHOW(syncfs(fd));
	SHOW(syncfs(-1));
}

int main(void)
{
	umask(022);
	files();
	entries();
	times_of_files();
	descriptors();
	children();
	return 0;
}
