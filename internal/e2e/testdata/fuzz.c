// Calls the system calls that the arguments name by number, each with random
// arguments of the kinds that do harm: pointers to nowhere, to code, to the
// stack, to structures of rubbish, huge lengths, all sorts of descriptors.
// A batch of calls is made by a process of its own, that is killed if it does
// not end; the program says at the end that it is still there.
//
// usage: fuzz SEED BATCHES NUMBER...
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long word;

enum { PER_BATCH = 40 };

static uint64_t state;

static uint64_t next_random(void) { // splitmix64
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned below(unsigned n) { return (unsigned)(next_random() % n); }

static char *page, *rubbish;

// argument is one of the values that system calls are wrong about.
static word argument(void) {
	static const word numbers[] = {
		0, 1, 2, 3, 4, 7, 8, 16, 24, 31, 32, 63, 64, 65, 100, 127, 128, 255, 256, 511, 512, 1024, 4095, 4096,
		4097, 8192, 65535, 65536, 1 << 20, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffff,
		0x7ffffffff000, 0x800000000000, 0xffff800000000000, 0xffffffff80000000, ~0UL << 12, ~0UL - 4095, ~0UL - 7,
		~0UL, ~0UL >> 1, ~(~0UL >> 1), -100, 0x541b, 0x5421, 0x80000, 0x800,
	};
	switch (below(8)) {
	case 0: return numbers[below(sizeof numbers / sizeof *numbers)];
	case 1: return below(24); // descriptors, mostly
	case 2: return (word)page + below(4096);
	case 3: return (word)page + 4096 - below(64); // the next page is missing
	case 4: return (word)rubbish + 8 * below(1024);
	case 5: return (word)"fuzzed" + (below(4) == 0);
	case 6: return next_random() >> below(64);
	default: return (word)(below(2) ? (char *)&state : (char *)&argument) + 4 * below(16);
	}
}

static void spoil(void) {
	for (int i = 0; i < 8192 / 8; i++) {
		word v = below(3) ? argument() : below(200);
		memcpy(rubbish + 8 * i, &v, 8);
	}
}

static void on_tick(int sig) { (void)sig; }

static void prepare(void) {
	page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rubbish = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	int p[2], s[2];
	// This may fail because of an earlier batch.
	open("fuzzed", O_RDWR | O_CREAT, 0600);
	open(".", O_RDONLY);
	if (pipe(p) || socketpair(AF_UNIX, SOCK_STREAM, 0, s) || socketpair(AF_UNIX, SOCK_DGRAM, 0, s)) exit(2);
	eventfd(3, 0);
	epoll_create1(0);
	timerfd_create(CLOCK_MONOTONIC, 0);
	socket(AF_INET, SOCK_STREAM, 0);
	socket(AF_INET, SOCK_DGRAM, 0);
	syscall(SYS_memfd_create, "fuzzed", 0);
	open("/proc/self/mem", O_RDWR);
	open("/proc/self/maps", O_RDONLY);
	open("/dev/zero", O_RDWR);
	// A call that waits is interrupted, again and again.
	struct sigaction tick = {.sa_handler = on_tick};
	struct itimerval often = {{0, 1000}, {0, 1000}};
	sigaction(SIGALRM, &tick, 0);
	setitimer(ITIMER_REAL, &often, 0);
}

static void batch(long parent, char **numbers, int count) {
	setpgid(0, 0);
	prepare();
	spoil();
	for (int i = 0; i < PER_BATCH; i++) {
		long n = atol(numbers[below(count)]);
		word a[6];
		for (int k = 0; k < 6; k++) a[k] = argument();
		// The one that watches must not be stopped.
		int to = (int)a[0];
		if ((n == SYS_kill || n == SYS_tkill || n == SYS_tgkill || n == SYS_rt_sigqueueinfo || n == SYS_rt_tgsigqueueinfo) &&
		    (to == -1 || labs((long)to) == parent))
			continue;
		if (n == SYS_prlimit64 && to == parent) continue;
		if ((n == SYS_fork || n == SYS_vfork || n == SYS_clone || n == SYS_clone3) && below(8)) continue;
		if (getenv("SHOW")) fprintf(stderr, "%ld %lx %lx %lx %lx %lx %lx\n", n, a[0], a[1], a[2], a[3], a[4], a[5]);
		syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	_exit(0);
}

int main(int argc, char **argv) {
	if (argc < 4) return 2;
	state = strtoul(argv[1], 0, 10);
	int batches = atoi(argv[2]);
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int b = 0; b < batches; b++) {
		next_random();
		pid_t pid = fork();
		if (pid < 0) continue;
		if (pid == 0) {
			sigprocmask(SIG_UNBLOCK, &child, 0);
			batch(getppid(), argv + 3, argc - 3);
		}
		struct timespec patience = {0, 200000000};
		sigtimedwait(&child, 0, &patience);
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		while (waitpid(-1, 0, WNOHANG) > 0) {}
	}
	puts("still there");
	fflush(stdout);
	kill(-1, SIGKILL);
	_exit(0);
}
