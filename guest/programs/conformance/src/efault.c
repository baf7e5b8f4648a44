// Wild pointers given to system calls: EFAULT, no crash, no partial effect.
#include "conformance.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#define RAW(nr, ...) syscall(SYS_##nr, ##__VA_ARGS__)

int main(void)
{
	char *hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED && mprotect(hole + 4096, 4096, PROT_NONE) == 0);
	void *bad = hole + 4096, *kernel = (void *)0xffffffff80000000ul, *odd = (void *)0x8000000000000000ul;
	write_file("file", "0123456789");
	int fd = open("file", O_RDWR), pair[2], ends[2];
	CHECK(fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(ends) == 0);
	CHECK(write(ends[1], "abc", 3) == 3);

	SHOW(RAW(read, fd, bad, 5));
	SHOW(RAW(read, fd, kernel, 5));
	SHOW(RAW(read, fd, odd, 5));
	SHOW(RAW(read, ends[0], bad, 3));
	SHOW(RAW(write, fd, bad, 5));
	SHOW(RAW(pwrite64, fd, NULL, 5, 0));
	SHOW(RAW(readv, fd, bad, 1));
	SHOW(RAW(open, bad, O_RDONLY));
	SHOW(RAW(open, NULL, O_RDONLY));
	SHOW(RAW(stat, "file", bad));
	SHOW(RAW(stat, bad, hole));
	SHOW(RAW(fstat, fd, bad));
	SHOW(RAW(statx, AT_FDCWD, "file", 0, STATX_ALL, bad));
	SHOW(RAW(pipe, bad));
	SHOW(RAW(poll, bad, 1, 0));
	SHOW(RAW(select, 3, bad, NULL, NULL, NULL));
	SHOW(RAW(nanosleep, bad, NULL));
	SHOW(RAW(clock_gettime, CLOCK_MONOTONIC, bad));
	SHOW(RAW(gettimeofday, bad, NULL));
	SHOW(RAW(uname, bad));
	SHOW(RAW(getcwd, bad, 100));
	SHOW(RAW(readlink, "/proc/self/exe", bad, 100));
	SHOW(RAW(getdents64, open(".", O_RDONLY), bad, 1000));
	SHOW(RAW(rt_sigaction, SIGUSR1, bad, NULL, 8));
	SHOW(RAW(rt_sigprocmask, SIG_BLOCK, bad, NULL, 8));
	SHOW(RAW(sigaltstack, bad, NULL));
	SHOW(RAW(rt_sigtimedwait, bad, NULL, NULL, 8));
	SHOW(RAW(wait4, -1, bad, 0, NULL));
	SHOW(RAW(execve, bad, NULL, NULL));
	SHOW(RAW(execve, "/proc/self/exe", bad, NULL));
	SHOW(RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, bad));
	SHOW(RAW(sendto, pair[0], bad, 5, 0, NULL, 0));
	SHOW(RAW(sendmsg, pair[0], bad, 0));
	SHOW(RAW(bind, pair[0], bad, 16));
	SHOW(RAW(getrandom, bad, 10, 0));
	SHOW(RAW(getrlimit, RLIMIT_NOFILE, bad));
	SHOW(RAW(getrusage, RUSAGE_SELF, bad));
	SHOW(RAW(sysinfo, bad));
	SHOW(RAW(times, bad));
	SHOW(RAW(sched_getaffinity, 0, 128, bad));
	SHOW(RAW(set_robust_list, bad, 24));
	SHOW(RAW(epoll_ctl, epoll_create1(0), EPOLL_CTL_ADD, pair[0], bad));
	SHOW(RAW(timer_create, CLOCK_MONOTONIC, bad, NULL));
	SHOW(RAW(mincore, hole, 4096, bad));
	SHOW(RAW(ftruncate, fd, -1L));
	SHOW(RAW(fcntl, fd, F_GETLK, bad));
	SHOW(RAW(chdir, bad));
	SHOW(RAW(utimensat, AT_FDCWD, "file", bad, 0));

	// Across the start of a hole: a pipe transfers all or nothing, readv the part that fits.
	SHOW(read(ends[0], hole + 4096 - 2, 3));
	SHOW(read(ends[0], hole, 3));
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	struct iovec v[2] = {{hole, 4}, {bad, 4}};
	SHOW(readv(fd, v, 2));
	SHOW(lseek(fd, 0, SEEK_CUR));
	printf("%.4s\n", hole);
	// A string that ends in a hole.
	memset(hole, 'x', 4096);
	SHOW(open(hole + 4000, O_RDONLY));
	return 0;
}
