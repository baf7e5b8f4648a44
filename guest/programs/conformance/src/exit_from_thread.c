// exit() called by a thread while others block and spin: handlers run once, the status is the thread's.
// exit: 9
#include "conformance.h"

static atomic_int ready;

static void *blocked(void *arg)
{
	ready++;
	for (;;)
		pause();
	return arg;
}

static void *spinning(void *arg)
{
	ready++;
	for (;;)
		sched_yield();
	return arg;
}

static void *leaver(void *arg)
{
	while (ready < 4)
		nap();
	exit((intptr_t)arg);
}

static void handler(void)
{
	printf("handler\n");
}

int main(void)
{
	atexit(handler);
	start(blocked, NULL);
	start(blocked, NULL);
	start(spinning, NULL);
	start(spinning, NULL);
	finish(start(leaver, (void *)9));
	return 1;
}
