// The costs of the kernel: an empty call, a page at its first use, a change of
// threads on one processor.
#include "measure.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void calls(long n) {
	for (long i = 0; i < n; i++) syscall(SYS_getppid);
}

static void pages(long n) {
	char *p = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) exit(1);
	madvise(p, n * 4096, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++) p[i * 4096] = 1;
	munmap(p, n * 4096);
}

enum { BATCHES = 40, ROUNDS = 500 };

static void pass(int from, int to) {
	char byte = 0;
	if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1) exit(1);
}

// A byte through a pipe and back, within one process.
static double alone(void) {
	int fd[2];
	double times[BATCHES];
	if (pipe(fd)) exit(1);
	for (int i = 0; i < BATCHES; i++) {
		double start = wall_ns();
		for (int k = 0; k < ROUNDS; k++) pass(fd[0], fd[1]);
		times[i] = (wall_ns() - start) / ROUNDS;
	}
	return median(times, BATCHES);
}

// The same between two processes on one processor: lmbench's lat_ctx.
static double between(void) {
	int there[2], back[2];
	double times[BATCHES];
	if (pipe(there) || pipe(back)) exit(1);
	pid_t other = fork();
	if (other == 0) {
		char byte;
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1) break;
		_exit(0);
	}
	if (other < 0) exit(1);
	for (int i = 0; i < BATCHES; i++) {
		double start = wall_ns();
		for (int k = 0; k < ROUNDS; k++) pass(back[0], there[1]);
		times[i] = (wall_ns() - start) / ROUNDS;
	}
	close(there[1]);
	waitpid(other, NULL, 0);
	return median(times, BATCHES);
}

int main(void) {
	int first, second;
	alarm(60);
	two_processors(&first, &second);
	stay_on(first);
	report("syscall", least_ns(calls, 100000));
	report("page_fault", least_ns(pages, 4096));
	report("context_switch", between() / 2 - alone());
	return 0;
}
