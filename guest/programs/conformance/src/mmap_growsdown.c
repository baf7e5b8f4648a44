// Stacks that grow: a MAP_GROWSDOWN mapping and the main stack by a large frame; below the limit is SIGSEGV.
#include "conformance.h"

#include <setjmp.h>

static sigjmp_buf env;

static void on_segv(int sig)
{
	siglongjmp(env, sig);
}

static char *volatile reached;

__attribute__((noinline)) static int large_frame(int n)
{
	volatile char big[n];
	memset((char *)big, 1, n);
	return big[0] + big[n / 2] + big[n - 1];
}

int main(void)
{
	enum { ROOM = 4 << 20, PAGE = 4096 };
	// Room that is certainly free, with the growing page at its top and a
	// readable page at its bottom.
	char *room = mmap(NULL, ROOM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(room != MAP_FAILED);
	CHECK(munmap(room + PAGE, ROOM - PAGE) == 0);
	char *top = mmap(room + ROOM - PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
	CHECK(top == room + ROOM - PAGE);
	for (int i = 0; i < 100; i++) {
		CHECK(top[-i * PAGE] == 0);
		top[-i * PAGE] = i;
	}
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum += top[-i * PAGE];
	printf("grown by pages: %d\n", sum);

	printf("large frame: %d\n", large_frame(5 << 20));

	char *alt = malloc(SIGSTKSZ);
	stack_t ss = {.ss_sp = alt, .ss_size = SIGSTKSZ};
	CHECK(sigaltstack(&ss, NULL) == 0);
	on_signal(SIGSEGV, on_segv, SA_ONSTACK);
	if (sigsetjmp(env, 1) == 0) {
		// The mapping does not grow into the guard gap next to another mapping.
		for (reached = top; reached > room; reached -= PAGE)
			*reached = 1;
		printf("no end\n");
	} else {
		printf("stopped %ld pages above it\n", (long)(reached - room) / PAGE);
	}
	struct rlimit lim;
	CHECK(getrlimit(RLIMIT_STACK, &lim) == 0);
	if (sigsetjmp(env, 1) == 0) {
		lim.rlim_cur = 1 << 20;
		CHECK(setrlimit(RLIMIT_STACK, &lim) == 0);
		large_frame(7 << 20);
		printf("no limit\n");
	} else {
		printf("the stack limit stops it\n");
	}
	return 0;
}
