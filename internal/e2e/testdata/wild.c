// Calls system calls with pointers that point nowhere good.
//
// usage: wild            print the results of calls that are fine otherwise,
//                        each made by a process of its own
//        wild NUMBER...  pass such pointers in every argument of the numbered
//                        calls, whatever they are, and count the calls
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long word;

// Arguments that are filled in: a pointer to zeros, a pointer to the name of a
// file, and descriptors. Everything else is passed as it is.
enum {
	MARK = 0x5a5a0000,
	P = MARK, // a page of zeros that can be written
	T,        // as P, but not replaced by NULL, with which the call would wait
	S,        // "data"
	N,        // a name that is not there
	FILEFD,
	DIRFD,
	READEND,
	WRITEEND,
	SOCKET,
	EVENT,
	EPOLL,
	TIMER,
	LAST,
};

static const struct {
	const char *name;
	long number;
	word args[6];
} calls[] = {
#define CALL(name, ...) {#name, SYS_##name, {__VA_ARGS__}},
	CALL(read, FILEFD, P, 16)
	CALL(read, READEND, P, 16)
	CALL(read, EVENT, P, 8)
	CALL(read, SOCKET, P, 16)
	CALL(write, FILEFD, P, 16)
	CALL(write, WRITEEND, P, 16)
	CALL(write, EVENT, P, 8)
	CALL(write, SOCKET, P, 16)
	CALL(read, FILEFD, P, 0)
	CALL(write, FILEFD, P, 0)
	CALL(read, -1, P, 16)
	CALL(pread64, FILEFD, P, 16, 0)
	CALL(pwrite64, FILEFD, P, 16, 0)
	CALL(readv, FILEFD, P, 2)
	CALL(writev, FILEFD, P, 2)
	CALL(preadv, FILEFD, P, 2, 0, 0)
	CALL(pwritev, FILEFD, P, 2, 0, 0)
	CALL(preadv2, FILEFD, P, 2, 0, 0, 0)
	CALL(pwritev2, FILEFD, P, 2, 0, 0, 0)
	CALL(open, S, O_RDONLY, 0)
	CALL(openat, DIRFD, S, O_RDONLY, 0)
	CALL(creat, N, 0600)
	CALL(stat, S, P)
	CALL(lstat, S, P)
	CALL(fstat, FILEFD, P)
	CALL(newfstatat, DIRFD, S, P, 0)
	CALL(statx, DIRFD, S, 0, 0x7ff, P)
	CALL(statfs, S, P)
	CALL(fstatfs, FILEFD, P)
	CALL(access, S, R_OK)
	CALL(faccessat, DIRFD, S, R_OK)
	CALL(faccessat2, DIRFD, S, R_OK, 0)
	CALL(readlink, S, P, 10)
	CALL(readlinkat, DIRFD, S, P, 10)
	CALL(mkdir, N, 0700)
	CALL(mkdirat, DIRFD, N, 0700)
	CALL(rmdir, S)
	CALL(unlink, N)
	CALL(unlinkat, DIRFD, N, 0)
	CALL(rename, N, S)
	CALL(renameat, DIRFD, N, DIRFD, S)
	CALL(renameat2, DIRFD, N, DIRFD, S, 0)
	CALL(link, S, S)
	CALL(linkat, DIRFD, S, DIRFD, S, 0)
	CALL(symlink, S, S)
	CALL(symlinkat, S, DIRFD, S)
	CALL(chmod, S, 0600)
	CALL(fchmodat, DIRFD, S, 0600)
	CALL(truncate, S, 4096)
	CALL(utime, S, P)
	CALL(utimes, S, P)
	CALL(futimesat, DIRFD, S, P)
	CALL(utimensat, DIRFD, S, P, 0)
	CALL(mknod, S, S_IFREG | 0600, 0)
	CALL(mknodat, DIRFD, S, S_IFREG | 0600, 0)
	CALL(chdir, S)
	CALL(getcwd, P, 4096)
	CALL(getdents64, DIRFD, P, 4096)
	CALL(execve, N, P, P)
	CALL(execveat, DIRFD, N, P, P, 0)
	CALL(pipe, P)
	CALL(pipe2, P, 0)
	CALL(poll, P, 1, 0)
	CALL(ppoll, P, 1, T, P, 8)
	CALL(select, 4, P, P, P, T)
	CALL(pselect6, 4, P, P, P, T, P)
	CALL(epoll_ctl, EPOLL, EPOLL_CTL_ADD, SOCKET, P)
	CALL(epoll_wait, EPOLL, P, 4, 0)
	CALL(epoll_pwait, EPOLL, P, 4, 0, P, 8)
	CALL(epoll_pwait2, EPOLL, P, 4, T, P, 8)
	CALL(sendfile, WRITEEND, FILEFD, P, 16)
	CALL(splice, FILEFD, P, WRITEEND, 0, 16, 0)
	CALL(vmsplice, WRITEEND, P, 1, 0)
	CALL(copy_file_range, FILEFD, P, FILEFD, P, 0, 0)
	CALL(getrandom, P, 16, 0)
	CALL(memfd_create, S, 0)
	CALL(rt_sigaction, SIGUSR1, P, P, 8)
	CALL(rt_sigprocmask, SIG_BLOCK, P, P, 8)
	CALL(rt_sigpending, P, 8)
	CALL(rt_sigtimedwait, P, P, T, 8)
	CALL(rt_sigsuspend, P, 4)
	CALL(rt_sigqueueinfo, 0x7ffffff, SIGUSR1, P)
	CALL(rt_tgsigqueueinfo, 0x7ffffff, 0x7ffffff, SIGUSR1, P)
	CALL(sigaltstack, P, P)
	CALL(signalfd4, -1, P, 8, 0)
	CALL(nanosleep, T, P)
	CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, T, P)
	CALL(clock_gettime, CLOCK_MONOTONIC, P)
	CALL(clock_getres, CLOCK_MONOTONIC, P)
	CALL(gettimeofday, P, P)
	CALL(time, P)
	CALL(times, P)
	CALL(getitimer, ITIMER_REAL, P)
	CALL(setitimer, ITIMER_REAL, P, P)
	CALL(timer_create, CLOCK_MONOTONIC, P, P)
	CALL(timer_settime, 0x7777, 0, P, P)
	CALL(timer_gettime, 0x7777, P)
	CALL(timerfd_settime, TIMER, 0, P, P)
	CALL(timerfd_gettime, TIMER, P)
	CALL(getrusage, RUSAGE_SELF, P)
	CALL(getrlimit, RLIMIT_NOFILE, P)
	CALL(prlimit64, 0, RLIMIT_NOFILE, 0, P)
	CALL(uname, P)
	CALL(sysinfo, P)
	CALL(getgroups, 65536, P)
	CALL(getresuid, P, P, P)
	CALL(getresgid, P, P, P)
	CALL(getcpu, P, P)
	CALL(sched_getaffinity, 0, 128, P)
	CALL(sched_getparam, 0, P)
	CALL(sched_rr_get_interval, 0, P)
	CALL(wait4, -1, P, WNOHANG, P)
	CALL(waitid, P_ALL, 0, P, WNOHANG | WEXITED, P)
	CALL(futex, P, FUTEX_WAIT, 1, P)
	CALL(futex, P, FUTEX_WAKE, 1)
	CALL(futex, P, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1)
	CALL(futex, P, FUTEX_REQUEUE, 1, 1, P)
	CALL(futex, P, FUTEX_CMP_REQUEUE, 1, 1, P, 1)
	CALL(futex, P, FUTEX_WAKE_OP, 1, 1, P, 0)
	CALL(get_robust_list, 0, P, P)
	CALL(set_robust_list, P, 1)
	CALL(arch_prctl, 0x1003, P)
	CALL(prctl, 15, P)
	CALL(prctl, 16, P)
	CALL(mincore, P, 4096, P)
	CALL(madvise, P, 4096, MADV_DONTNEED)
	CALL(madvise, P, 4096, MADV_NORMAL)
	CALL(msync, P, 4096, MS_ASYNC)
	CALL(mprotect, P, 4096, PROT_READ)
	CALL(mremap, P, 4096, 8192, MREMAP_MAYMOVE)
	CALL(mlock, P, 4096)
	CALL(munlock, P, 4096)
	CALL(munmap, P, 4096)
	CALL(mmap, P, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
	CALL(fcntl, FILEFD, F_GETLK, P)
	CALL(fcntl, FILEFD, F_SETLK, P)
	CALL(fcntl, FILEFD, F_OFD_GETLK, P)
	CALL(ioctl, READEND, 0x541b, P)
	CALL(ioctl, SOCKET, 0x541b, P)
	CALL(ioctl, FILEFD, 0x5421, P)
	CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, P)
	CALL(bind, SOCKET, P, 16)
	CALL(connect, SOCKET, P, 16)
	CALL(accept4, SOCKET, P, P, SOCK_NONBLOCK)
	CALL(getsockname, SOCKET, P, P)
	CALL(getpeername, SOCKET, P, P)
	CALL(sendto, SOCKET, P, 16, MSG_DONTWAIT, 0, 0)
	CALL(sendto, SOCKET, P, 16, MSG_DONTWAIT, P, 16)
	CALL(recvfrom, SOCKET, P, 16, MSG_DONTWAIT, P, P)
	CALL(sendmsg, SOCKET, P, MSG_DONTWAIT)
	CALL(recvmsg, SOCKET, P, MSG_DONTWAIT)
	CALL(sendmmsg, SOCKET, P, 2, MSG_DONTWAIT)
	CALL(recvmmsg, SOCKET, P, 2, MSG_DONTWAIT, P)
	CALL(getsockopt, SOCKET, SOL_SOCKET, SO_TYPE, P, P)
	CALL(setsockopt, SOCKET, SOL_SOCKET, SO_RCVBUF, P, 4)
	CALL(process_vm_readv, 0x7ffffff, P, 1, P, 1, 0)
	CALL(process_vm_writev, 0x7ffffff, P, 1, P, 1, 0)
	CALL(accept, SOCKET, P, P)
	CALL(capget, P, P)
	CALL(capset, P, P)
	CALL(chown, S, -1, -1)
	CALL(lchown, S, -1, -1)
	CALL(fchownat, DIRFD, S, -1, -1, 0)
	CALL(chroot, N)
	CALL(clock_settime, CLOCK_MONOTONIC, P)
	CALL(getxattr, S, S, P, 10)
	CALL(lgetxattr, S, S, P, 10)
	CALL(fgetxattr, FILEFD, S, P, 10)
	CALL(listxattr, N, P, 10)
	CALL(llistxattr, N, P, 10)
	CALL(setxattr, S, S, P, 16, 0)
	CALL(lsetxattr, S, S, P, 16, 0)
	CALL(fsetxattr, FILEFD, S, P, 16, 0)
	CALL(removexattr, S, S)
	CALL(lremovexattr, S, S)
	CALL(fremovexattr, FILEFD, S)
	CALL(mlock2, P, 4096, 0)
	CALL(futex, P, FUTEX_WAIT_BITSET, 1, P, 0, 1)
	CALL(futex, P, FUTEX_WAKE_BITSET, 1, 0, 0, 1)
	CALL(sched_setaffinity, 0, 8, P)
	CALL(sched_setparam, 0, P)
	CALL(sched_setscheduler, 0, SCHED_OTHER, P)
	CALL(setgroups, 4, P)
	CALL(setrlimit, RLIMIT_CORE, P)
	CALL(prlimit64, 0, RLIMIT_CORE, P, 0)
	CALL(signalfd, -1, P, 8)
	CALL(tee, READEND, WRITEEND, 16, P)
	CALL(fcntl, FILEFD, F_GETOWN_EX, P)
	CALL(fcntl, FILEFD, F_OFD_SETLK, P)
	CALL(prctl, PR_SET_NAME, P)
	CALL(prctl, PR_GET_PDEATHSIG, P)
	CALL(write, FILEFD, P, 4096)
	CALL(read, DIRFD, P, 16)
	CALL(readv, READEND, P, 1)
	CALL(writev, SOCKET, P, 1)
	CALL(ioctl, FILEFD, 0x541b, P)
	CALL(ioctl, FILEFD, 0x5401, P)
	CALL(getdents64, FILEFD, P, 4096)
	CALL(openat, FILEFD, S, O_RDONLY, 0)
	CALL(openat, -1, S, O_RDONLY, 0)
	CALL(munmap, P, 0)
	CALL(mremap, P, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, P)
	CALL(madvise, P, 8192, MADV_WILLNEED)
	CALL(msync, P, 8192, MS_SYNC)
	CALL(mprotect, P, 0, PROT_READ)
	CALL(set_tid_address, P)
	CALL(sigaltstack, P, 0)
	CALL(rt_sigaction, 65, P, P, 8)
	CALL(rt_sigaction, SIGKILL, P, P, 8)
	CALL(rt_sigprocmask, 9, P, P, 8)
	CALL(rt_sigprocmask, SIG_BLOCK, P, P, 9)
	CALL(getrusage, 99, P)
	CALL(getitimer, 9, P)
	CALL(clock_gettime, 99, P)
	CALL(epoll_ctl, FILEFD, EPOLL_CTL_ADD, SOCKET, P)
	CALL(epoll_ctl, EPOLL, EPOLL_CTL_DEL, SOCKET, P)
	CALL(epoll_wait, EPOLL, P, 0, 0)
};

static int fds[LAST - FILEFD];

// Places that a pointer can wrongly point to.
static struct {
	const char *name;
	word address;
} bad[] = {
	{"null", 0},
	{"one", 1},
	{"unmapped", 0},
	{"none", 0},
	{"readonly", 0},
	{"crossing", 0},
	{"unaligned", 0},
	{"top", 0x7ffffffff000},
	{"noncanonical", 0x800000000000},
	{"kernel", 0xffff888000000000},
	{"last", ~0UL},
};

enum { PLACES = sizeof bad / sizeof *bad };

static void make_places(void) {
	char *m = mmap(0, 6 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED || munmap(m + 4096, 4096) || mprotect(m + 2 * 4096, 4096, PROT_NONE) ||
	    mprotect(m + 3 * 4096, 4096, PROT_READ))
		exit(2);
	memset(m + 4096 - 3, 'a', 3);
	bad[2].address = (word)m + 4096;
	bad[3].address = (word)m + 2 * 4096;
	bad[4].address = (word)m + 3 * 4096;
	bad[5].address = (word)m + 4096 - 3;
	bad[6].address = (word)m + 4 * 4096 + 1;
}

static void make_fds(void) {
	int p[2], s[2];
	if (pipe2(p, O_NONBLOCK) || write(p[1], "some text in a pipe", 19) != 19 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, s) || write(s[1], "some text in a socket", 21) != 21)
		exit(2);
	fds[0] = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	fds[1] = open(".", O_RDONLY | O_DIRECTORY);
	fds[READEND - FILEFD] = p[0];
	fds[WRITEEND - FILEFD] = p[1];
	fds[SOCKET - FILEFD] = s[0];
	fds[EVENT - FILEFD] = eventfd(1, EFD_NONBLOCK);
	fds[EPOLL - FILEFD] = epoll_create1(0);
	fds[TIMER - FILEFD] = timerfd_create(CLOCK_MONOTONIC, 0);
	if (ftruncate(fds[0], 100)) exit(2);
}

static char zeros[6][8192] __attribute__((aligned(4096)));

static word good(word arg, int slot) {
	if (arg == P || arg == T) return (word)zeros[slot];
	if (arg == S) return (word) "data";
	if (arg == N) return (word) "no-such-name";
	if (arg >= FILEFD && arg < LAST) return (word)fds[arg - FILEFD];
	return arg;
}

// attempt prints the result of a call when the argument in slot is a bad pointer.
static void attempt(int call, int slot, int place) {
	word a[6];
	for (int i = 0; i < 6; i++) a[i] = good(calls[call].args[i], i);
	a[slot] = bad[place].address;
	if (calls[call].number == SYS_mincore && slot != 0) a[0] = (word)zeros[0];
	alarm(20);
	long r = syscall(calls[call].number, a[0], a[1], a[2], a[3], a[4], a[5]);
	int e = errno;
	printf("%s/%d %d %s: %s\n", calls[call].name, call, slot, bad[place].name, r == -1 ? strerrorname_np(e) : "ok");
	fflush(stdout);
	_exit(0);
}

static void compare(void) {
	for (int call = 0; call < (int)(sizeof calls / sizeof *calls); call++) {
		for (int slot = 0; slot < 6; slot++) {
			word arg = calls[call].args[slot];
			if (arg < P || arg > N) continue;
			for (int place = 0; place < PLACES; place++) {
				if (place == 0 && arg == T) continue;
				fflush(stdout);
				pid_t pid = fork();
				if (pid == 0) {
					make_fds();
					attempt(call, slot, place);
				}
				int status = 0;
				if (pid < 0 || waitpid(pid, &status, 0) != pid) exit(2);
				if (status != 0) printf("%s/%d %d %s: status %#x\n", calls[call].name, call, slot, bad[place].name, status);
			}
		}
	}
}

// The other arguments of a call of the sweep: zeros, numbers that are good as
// descriptors and lengths, or pointers to zeros.
enum { OTHERS = 3, EACH = OTHERS * 6 * PLACES };

static void other_arguments(word *a, int kind) {
	static const word numbers[6] = {3, 4, 1, 1, 5, 1};
	for (int i = 0; i < 6; i++) a[i] = kind == 0 ? 0 : kind == 1 ? numbers[i] : (word)zeros[i];
}

static int strikes_others(long number) {
	switch (number) {
	case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_rt_sigqueueinfo: case SYS_rt_tgsigqueueinfo: return 1;
	}
	return 0;
}

// sweep_from makes the calls of one number from *next on, until one of them
// ends the process or none is left.
static void sweep_from(long number, volatile int *next) {
	setpgid(0, 0);
	make_fds();
	while (*next < EACH) {
		int n = (*next)++;
		word a[6];
		other_arguments(a, n / PLACES / 6);
		a[n / PLACES % 6] = bad[n % PLACES].address;
		if (strikes_others(number) && (int)a[0] <= 0) continue;
		syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

// sweep has the calls made by children, one after the other; one that waits for
// ever is killed.
static void sweep(long number, volatile int *next) {
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, 0);
	for (*next = 0; *next < EACH;) {
		pid_t pid = fork();
		if (pid < 0) exit(2);
		if (pid == 0) {
			sweep_from(number, next);
			_exit(0);
		}
		struct timespec patience = {0, 50000000};
		sigtimedwait(&child, 0, &patience);
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		while (waitpid(-1, 0, WNOHANG) > 0) {}
	}
}

int main(int argc, char **argv) {
	// Before the places, or it would be in the hole among them.
	volatile int *next = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make_places();
	if (argc == 1) {
		compare();
		return 0;
	}
	if (next == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1)) return 2;
	long calls = 0;
	for (int i = 1; i < argc; i++) {
		sweep(atol(argv[i]), next);
		calls += EACH;
	}
	printf("%ld calls\n", calls);
	fflush(stdout);
	kill(-1, SIGKILL);
	_exit(0);
}
