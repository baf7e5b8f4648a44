// A thread that touches an unmapped address kills the whole process, blocked threads included.
// signal: SIGSEGV
#include "conformance.h"

static atomic_int ready;

static void *blocked(void *arg)
{
	ready++;
	for (;;)
		pause();
	return arg;
}

static void *crash(void *arg)
{
	while (ready < 3)
		nap();
	printf("about to crash\n");
	*(volatile int *)arg = 1;
	return NULL;
}

int main(void)
{
	no_core();
	for (int i = 0; i < 3; i++)
		start(blocked, NULL);
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED);
	finish(start(crash, hole));
	printf("unreachable\n");
	return 0;
}
