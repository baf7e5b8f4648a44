// Everything that differs from run to run on a real machine, printed: lost
// updates, order of arrival, times, process ids, random numbers, addresses,
// cores, inode numbers, the contents of an uninitialised stack, signals that
// interrupt, a pipe with two writers.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { THREADS = 6, ROUNDS = 400 };

static volatile int counter, ticks;
static int arrivals[THREADS], cores[THREADS];
static volatile int arrived;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, handoffs;

static void on_tick(int sig) { (void)sig; ticks++; }

static void *work(void *arg) {
	int self = (int)(intptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		int seen = counter;
		for (volatile int j = 0; j < seen % 7; j++) {}
		counter = seen + 1;
		if (i % 100 == 50) {
			pthread_mutex_lock(&lock);
			if (turn % THREADS == self) handoffs++;
			turn += self + 1;
			pthread_cond_broadcast(&changed);
			pthread_mutex_unlock(&lock);
		}
	}
	pthread_mutex_lock(&lock);
	arrivals[arrived++] = self;
	cores[self] = sched_getcpu();
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return &lock;
}

static void two_writers(void) {
	int p[2];
	if (pipe(p)) exit(1);
	for (int i = 0; i < 2; i++) {
		if (fork() == 0) {
			for (int n = 0; n < 20; n++) {
				char c = (char)('a' + i);
				if (write(p[1], &c, 1) != 1) _exit(1);
				if (n % 5 == i) sched_yield();
			}
			_exit(0);
		}
	}
	close(p[1]);
	char all[64] = {0};
	int n = 0, got;
	while ((got = (int)read(p[0], all + n, sizeof all - 1 - n)) > 0) n += got;
	int order[2] = {wait(0), wait(0)};
	printf("writers %s ended %d %d\n", all, order[0], order[1]);
}

static void state(void) {
	unsigned char random[16], junk[64];
	struct timespec now, cpu;
	struct stat st;
	struct rusage ru;
	struct sysinfo si;
	if (getrandom(random, sizeof random, 0) != sizeof random || stat("/proc/self/exe", &st)) exit(1);
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	getrusage(RUSAGE_SELF, &ru);
	sysinfo(&si);
	printf("time %ld.%09ld cpu %09ld user %ld tsc %llu\n", (long)now.tv_sec, now.tv_nsec, cpu.tv_nsec,
	       (long)ru.ru_utime.tv_usec, (unsigned long long)__rdtsc());
	printf("pid %d parent %d uptime %ld procs %d ino %ld mtime %ld\n", getpid(), getppid(), si.uptime, si.procs,
	       (long)st.st_ino, (long)st.st_mtime);
	printf("addresses %p %p %p %p\n", (void *)junk, malloc(10), malloc(1 << 20), (void *)&state);
	uint64_t h = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
	for (size_t i = 0; i < sizeof junk; i++) h = h * 31 + ((volatile unsigned char *)junk)[i];
#pragma GCC diagnostic pop
	for (size_t i = 0; i < sizeof random; i++) h = h * 31 + random[i];
	printf("junk and random %016lx\n", h);
}

static void files(const char *name) {
	char line[256];
	FILE *f = fopen(name, "r");
	while (f && fgets(line, sizeof line, f)) fputs(line, stdout);
	DIR *d = opendir(name);
	for (struct dirent *e; d && (e = readdir(d));) printf("%s %ld\n", e->d_name, (long)e->d_ino);
}

int main(int argc, char **argv) {
	pthread_t t[THREADS];
	signal(SIGALRM, on_tick);
	struct itimerval every = {{0, 50}, {0, 50}};
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < THREADS; i++) pthread_create(&t[i], 0, work, (void *)(intptr_t)i);
	pthread_mutex_lock(&lock);
	while (arrived < THREADS) pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_REAL, &every, 0);
	printf("counter %d handoffs %d ticks %d\n", counter, handoffs, ticks);
	for (int i = 0; i < THREADS; i++) printf("arrival %d core %d\n", arrivals[i], cores[i]);
	fflush(stdout);
	two_writers();
	state();
	files("/proc/self/maps");
	files("/proc/self/stat");
	files("/proc/meminfo");
	files("/proc/uptime");
	files("/proc/loadavg");
	files("/proc/self/environ");
	files("/proc");
	files("/usr/lib/locale");
	for (int i = 1; i < argc; i++) files(argv[i]);
	return counter % 7;
}
