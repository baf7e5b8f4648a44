// Asks for more than there is, in the way that the argument names, and prints
// the last result. Each way ends by itself.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// end says how often something worked and why it stopped to.
static void end(long n) {
	int e = errno;
	printf("%ld, then %s\n", n, strerrorname_np(e));
	fflush(stdout);
	_exit(0);
}

// plenty raises the number of descriptors that the process may have.
static void plenty(void) {
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l)) exit(2);
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l)) exit(2);
}

static void *wait_for_ever(void *arg) {
	pause();
	return arg;
}

static void threads(void) {
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (long n = 0;; n++) {
		pthread_t t;
		int e = pthread_create(&t, &small, wait_for_ever, NULL);
		if (e) {
			errno = e;
			end(n);
		}
	}
}

static void forks(void) {
	for (long n = 0;; n++) {
		pid_t pid = fork();
		if (pid < 0) end(n);
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
}

// A real fork bomb: every process makes others until it may not.
static void bomb(void) {
	pid_t first = getpid();
	for (;;) {
		if (fork() < 0) {
			if (getpid() == first) end(0);
			_exit(0);
		}
	}
}

static void memory(void) {
	for (long n = 0;; n++) {
		char *p = malloc(1 << 20);
		if (!p) end(n);
		memset(p, 1 + (int)(n % 100), 1 << 20);
	}
}

// The same memory, but the kernel writes it.
static void memory_by_read(void) {
	int zero = open("/dev/zero", O_RDONLY);
	for (long n = 0;; n++) {
		char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED || read(zero, p, 1 << 20) < 0) end(n);
	}
}

static void shared_memory(void) {
	for (long n = 0;; n++) {
		char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) end(n);
		memset(p, 1, 1 << 20);
	}
}

static void try(const char *name, void *p) {
	printf("%s: %s\n", name, p && p != MAP_FAILED ? "ok" : strerrorname_np(errno));
}

static void huge(void) {
	const size_t tib = 1UL << 40;
	const int rw = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	try("malloc 1 TiB", malloc(tib));
	try("calloc 1 TiB", calloc(tib / 8, 8));
	volatile size_t most = SIZE_MAX - 4096;
	try("malloc SIZE_MAX", malloc(most));
	try("mmap 1 TiB", mmap(0, tib, rw, anonymous, -1, 0));
	try("mmap 1 TiB shared", mmap(0, tib, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	char *p = mmap(0, tib, rw, anonymous | MAP_NORESERVE, -1, 0);
	try("mmap 1 TiB noreserve", p);
	for (size_t at = 0; at < tib; at += tib / 16) p[at] = 1;
	try("mremap to 2 TiB", mremap(p, tib, 2 * tib, MREMAP_MAYMOVE));
	printf("mprotect 1 TiB: %d\n", mprotect(p, tib, PROT_READ));
	printf("madvise 1 TiB: %d\n", madvise(p, tib, MADV_DONTNEED));
	printf("munmap 1 TiB: %d\n", munmap(p, tib));
	try("mmap 128 TiB", mmap(0, 1UL << 47, PROT_NONE, anonymous | MAP_NORESERVE, -1, 0));
	try("mmap everything", mmap(0, SIZE_MAX, PROT_NONE, anonymous | MAP_NORESERVE, -1, 0));
	try("sbrk 1 TiB", sbrk((intptr_t)tib) == (void *)-1 ? NULL : "");
	p = mmap(0, tib, rw, anonymous | MAP_NORESERVE, -1, 0);
	fflush(stdout);
	printf("mlock 1 TiB: %d\n", mlock(p, tib));
}

static void populate(void) {
	try("populate 1 GiB", mmap(0, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_NORESERVE, -1, 0));
}

static uint64_t state = 1;

static uint64_t next_random(void) { // splitmix64
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

// overlap maps, moves and protects pieces of one gigabyte over one another,
// unaligned and empty ones too.
static void overlap(void) {
	char *base = mmap(0, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) exit(2);
	int fd = open("overlapped", O_RDWR | O_CREAT, 0600);
	if (ftruncate(fd, 1 << 20)) exit(2);
	long good = 0;
	for (int i = 0; i < 20000; i++) {
		uint64_t r = next_random();
		char *a = base + (next_random() % (1 << 30) & ~(r % 16 ? 4095UL : 0)), *b = base + (next_random() % (1 << 30) & ~4095UL);
		size_t n = next_random() >> (34 + next_random() % 30), m = next_random() % (1 << 22);
		if (n > (size_t)(base + (1 << 30) - a)) n = (size_t)(base + (1 << 30) - a);
		if (m > (size_t)(base + (1 << 30) - b)) m = (size_t)(base + (1 << 30) - b);
		int prot = (int)(r >> 8 & 7), shared = r >> 16 & 1, of_file = r >> 17 & 1;
		switch (r >> 24 & 7) {
		case 0: case 1: case 2: {
			int flags = (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE) | (of_file ? 0 : MAP_ANONYMOUS) | MAP_FIXED;
			good += mmap(a, n, prot, flags, of_file ? fd : -1, (off_t)(r >> 32 & 0xff) << 12) != MAP_FAILED;
			break;
		}
		case 3: good += munmap(a, n) == 0; break;
		case 4: good += mprotect(a, n, prot) == 0; break;
		case 5: good += mremap(a, n, m, MREMAP_MAYMOVE | MREMAP_FIXED, b) != MAP_FAILED; break;
		case 6: good += madvise(a, n, (int)(r >> 32 & 31)) == 0; break;
		case 7: good += write(fd, a, n % 70000) > 0 || read(fd, a, n % 70000) > 0 || lseek(fd, 0, SEEK_SET) == 0; break;
		}
	}
	printf("%s\n", good > 1000 ? "many worked" : "few worked");
}

static void mappings(void) {
	for (long n = 0;; n++) {
		if (mmap(0, 4096, n % 2 ? PROT_READ : PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) end(n);
	}
}

static void files(void) {
	plenty();
	for (long n = 0; n < 10000; n++) {
		if (open("/dev/null", O_RDWR) < 0) end(n);
	}
	long sum = 0;
	for (int fd = 3; fd < 10003; fd++) sum += write(fd, "x", 1);
	printf("%ld of 10000\n", sum);
	for (long n = 10000;; n++) {
		if (open("file", O_RDWR | O_CREAT, 0600) < 0) end(n);
	}
}

static void pipes(void) {
	plenty();
	static char block[65536];
	for (long n = 0;; n++) {
		int p[2];
		if (pipe2(p, O_NONBLOCK)) end(n);
		if (write(p[1], block, sizeof block) <= 0) end(n);
	}
}

static void events(void) {
	plenty();
	int all = epoll_create1(0);
	for (long n = 0;; n++) {
		int fd = n % 3 == 0 ? eventfd(1, 0) : n % 3 == 1 ? epoll_create1(0) : timerfd_create(CLOCK_MONOTONIC, 0);
		if (fd < 0) end(n);
		struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
		if (epoll_ctl(all, EPOLL_CTL_ADD, fd, &e)) end(n);
	}
}

static void sockets(void) {
	plenty();
	static char block[1 << 18];
	for (long n = 0;; n++) {
		int s[2];
		if (socketpair(AF_UNIX, n % 2 ? SOCK_STREAM : SOCK_DGRAM, 0, s)) end(n);
		while (send(s[0], block, n % 2 ? sizeof block : 30000, MSG_DONTWAIT) > 0) {}
	}
}

// passing sends sockets through one another and closes them, so that nothing
// but messages refers to them.
static void passing(void) {
	plenty();
	for (long n = 0; n < 30000; n++) {
		int s[2];
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) end(n);
		union { char room[CMSG_SPACE(sizeof s)]; struct cmsghdr align; } u;
		struct iovec v = {"x", 1};
		struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = u.room, .msg_controllen = sizeof u.room};
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof s);
		memcpy(CMSG_DATA(c), s, sizeof s);
		if (sendmsg(s[0], &m, MSG_DONTWAIT) < 0) end(n);
		close(s[0]);
		close(s[1]);
	}
	printf("done\n");
}

static void overlay(void) {
	static char block[1 << 20];
	memset(block, 1, sizeof block);
	for (long n = 0;; n++) {
		char name[32];
		sprintf(name, "file-%ld", n);
		int fd = open(name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0) end(n);
		for (size_t done = 0; done < sizeof block;) {
			ssize_t k = write(fd, block + done, sizeof block - done);
			if (k < 0) end(n);
			done += (size_t)k;
		}
		close(fd);
	}
}

static void names(void) {
	for (long n = 0;; n++) {
		char name[300];
		sprintf(name, "%0250ld", n);
		int fd = open(name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0) end(n);
		close(fd);
	}
}

// misses asks for files that are not there, each another one.
static void misses(void) {
	struct stat st;
	for (long n = 0; n < 300000; n++) {
		char name[300];
		sprintf(name, n % 2 ? "%0250ld" : "/usr/lib/%0240ld", n);
		if (stat(name, &st) == 0 || errno != ENOENT) end(n);
	}
	printf("done\n");
}

// zombies makes children that no one waits for.
static void zombies(void) {
	for (long n = 0;; n++) {
		pid_t pid = fork();
		if (pid < 0) end(n);
		if (pid == 0) _exit(0);
	}
}

// tables makes the descriptor table as large as it can be, in many processes.
static void tables(void) {
	plenty();
	struct rlimit l;
	getrlimit(RLIMIT_NOFILE, &l);
	if (dup2(0, (int)l.rlim_cur - 1) < 0) printf("dup2: %s\n", strerrorname_np(errno));
	if (dup2(0, 300000) < 0) printf("dup2: %s\n", strerrorname_np(errno));
	forks();
}

// watches has many epoll instances watch many files.
static void watches(void) {
	plenty();
	int files[1000];
	for (int i = 0; i < 1000; i++) files[i] = eventfd(0, 0);
	for (long n = 0;;) {
		int all = epoll_create1(0);
		if (all < 0) end(n);
		for (int i = 0; i < 1000; i++, n++) {
			struct epoll_event e = {.events = EPOLLIN};
			if (epoll_ctl(all, EPOLL_CTL_ADD, files[i], &e)) end(n);
		}
	}
}

// code runs very many pieces of code, each its own.
static void code(void) {
	const size_t size = 8 << 20, step = 64;
	unsigned char *p = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) end(0);
	long sum = 0;
	for (size_t at = 0; at + step <= size; at += step) {
		unsigned char text[] = {0xb8, 0, 0, 0, 0, 0xc3}; // mov $n, %eax; ret
		uint32_t n = (uint32_t)at;
		memcpy(text + 1, &n, 4);
		memcpy(p + at, text, sizeof text);
		sum += ((int (*)(void))(void *)(p + at))() == (int)n;
	}
	printf("%s\n", sum == (long)(size / step) ? "all right" : "wrong");
}

static void folders(void) {
	for (long n = 0;; n++) {
		if (mkdir("folder", 0700) || chdir("folder")) end(n);
	}
}

static void sparse(void) {
	int fd = open("sparse", O_RDWR | O_CREAT, 0600);
	printf("ftruncate 1 EiB: %d\n", ftruncate(fd, 1L << 60));
	for (int i = 0; i < 60; i++)
		if (pwrite(fd, "x", 1, 1L << i) != 1) end(i);
	errno = 0;
	printf("fallocate 1 TiB: %s\n", fallocate(fd, 0, 0, 1L << 40) ? strerrorname_np(errno) : "ok");
	int null = open("/dev/null", O_WRONLY);
	errno = 0;
	printf("sendfile: %d\n", syscall(SYS_sendfile, null, fd, NULL, 1 << 20) == 1 << 20);
}

static int deep(int n) {
	volatile char room[4096];
	room[n % 4096] = (char)n;
	return n > 1000000000 ? 0 : deep(n + 1) + room[n % 4096];
}

static void signals(void) {
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (long n = 0;; n++) {
		if (sigqueue(getpid(), SIGRTMIN + (int)(n % 30), (union sigval){0})) end(n);
	}
}

static void timers(void) {
	struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
	for (long n = 0;; n++) {
		timer_t t;
		struct itimerspec often = {{0, 1000}, {0, 1000}};
		if (timer_create(CLOCK_MONOTONIC, &quiet, &t) || timer_settime(t, 0, &often, NULL)) end(n);
	}
}

static void locks(void) {
	int fd = open("locked", O_RDWR | O_CREAT, 0600);
	for (long n = 0;; n++) {
		struct flock l = {.l_type = F_WRLCK, .l_start = 2 * n, .l_len = 1};
		if (fcntl(fd, F_SETLK, &l)) end(n);
	}
}

static void arguments(void) {
	const int count = 70000;
	char *word = malloc(130000), **list = malloc((count + 1) * sizeof *list);
	memset(word, 'a', 129999);
	word[129999] = 0;
	for (int i = 0; i < count; i++) list[i] = word;
	list[count] = NULL;
	char *few[] = {"true", NULL};
	errno = 0;
	execve("/bin/true", list, few);
	printf("arguments: %s\n", strerrorname_np(errno));
	execve("/bin/true", few, list);
	printf("environment: %s\n", strerrorname_np(errno));
}

static void vectors(void) {
	static struct iovec v[1024];
	static char block[1 << 20];
	int fd = open("vectors", O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 1024; i++) v[i] = (struct iovec){block, sizeof block};
	for (long n = 0;; n++)
		if (writev(fd, v, 1024) <= 0) end(n > 0);
}

static void segments(void) {
	for (long n = 0;; n++)
		if (shmget(IPC_PRIVATE, 1 << 20, 0600) < 0) end(n);
}

static void semaphores(void) {
	for (long n = 0;; n++)
		if (semget(IPC_PRIVATE, 32000, 0600) < 0) end(n);
}

static void messages(void) {
	static struct {
		long type;
		char text[8192];
	} m = {1, ""};
	long n = 0;
	for (;;) {
		int q = msgget(IPC_PRIVATE, 0600);
		if (q < 0) end(n);
		for (int i = 0; i < 2; i++, n++)
			if (msgsnd(q, &m, sizeof m.text, IPC_NOWAIT)) end(n);
	}
}

static void queues(void) {
	static char text[8192];
	char name[32];
	plenty();
	long n = 0;
	for (int k = 0;; k++) {
		snprintf(name, sizeof name, "hog%d", k);
		int q = syscall(SYS_mq_open, name, O_CREAT | O_RDWR | O_NONBLOCK, 0600, NULL);
		if (q < 0) end(n);
		for (int i = 0; i < 10; i++, n++)
			if (syscall(SYS_mq_timedsend, q, text, sizeof text, 1, NULL)) end(n);
	}
}

static void terminals(void) {
	plenty();
	for (long n = 0;; n++) {
		int m = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
		static char text[4096];
		if (m < 0) end(n);
		memset(text, '\n', sizeof text);
		for (int i = 0; i < 3 && write(m, text, sizeof text) > 0; i++) {
		}
	}
}

// notices lets the events of a folder pile up in many instances.
static void notices(void) {
	plenty();
	mkdir("d", 0700);
	int list[128], n = 0;
	while (n < 128 && (list[n] = inotify_init1(IN_NONBLOCK)) >= 0)
		if (inotify_add_watch(list[n++], "d", IN_ALL_EVENTS) < 0) end(n);
	for (int i = 0; i < 20000; i++) close(open("d", O_RDONLY));
	char b[4096];
	int mask = 0;
	for (ssize_t r; (r = read(list[n - 1], b, sizeof b)) > 0;) mask = ((struct inotify_event *)(b + r - 16))->mask;
	printf("%s\n", mask == IN_Q_OVERFLOW ? "overflow" : "other");
	fflush(stdout);
	_exit(0);
}

// fail ends the process as programs do that are refused something: with a status.
static void fail(const char *call) {
	perror(call);
	_exit(1);
}

static void promise(void) {
	if (malloc(128UL << 30) == NULL) fail("malloc");
}

static void descriptors(void) {
	plenty();
	for (;;) {
		if (socket(AF_UNIX, SOCK_STREAM, 0) < 0) fail("socket");
	}
}

static void disk(void) {
	static char block[1 << 20];
	int fd = open("file", O_WRONLY | O_CREAT, 0600);
	while (write(fd, block, sizeof block) > 0) {}
	fail("write");
}

static const struct {
	const char *name;
	void (*f)(void);
} ways[] = {
	{"threads", threads}, {"forks", forks}, {"bomb", bomb}, {"memory", memory}, {"memory-by-read", memory_by_read},
	{"shared-memory", shared_memory}, {"huge", huge}, {"overlap", overlap}, {"mappings", mappings}, {"files", files},
	{"pipes", pipes}, {"events", events}, {"sockets", sockets}, {"passing", passing}, {"overlay", overlay},
	{"names", names}, {"folders", folders}, {"sparse", sparse}, {"signals", signals}, {"timers", timers},
	{"populate", populate}, {"misses", misses}, {"zombies", zombies}, {"tables", tables}, {"watches", watches}, {"code", code},
	{"segments", segments}, {"semaphores", semaphores}, {"messages", messages}, {"queues", queues}, {"terminals", terminals},
	{"notices", notices}, {"locks", locks}, {"arguments", arguments}, {"vectors", vectors},
	{"promise", promise}, {"descriptors", descriptors}, {"disk", disk},
};

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	if (strcmp(argv[1], "recursion") == 0) return deep(0);
	for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
		if (strcmp(argv[1], ways[i].name) == 0) {
			ways[i].f();
			return 0;
		}
	}
	return 2;
}
