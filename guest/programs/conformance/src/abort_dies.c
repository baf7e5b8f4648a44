// abort() ends the process by SIGABRT; lines written before it are output, exit handlers do not run.
// signal: SIGABRT
#include "conformance.h"

static void never(void)
{
	printf("exit handler\n");
}

int main(void)
{
	no_core();
	atexit(never);
	printf("before\n");
	abort();
}
