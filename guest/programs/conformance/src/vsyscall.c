// The legacy vsyscall page, where the kernel has one: time, gettimeofday and getcpu answer as the system calls do.
#include "conformance.h"

#include <setjmp.h>
#include <sys/time.h>

static sigjmp_buf env;

static void handler(int sig)
{
	siglongjmp(env, sig);
}

int main(void)
{
	on_signal(SIGSEGV, handler, 0);
	time_t (*vtime)(time_t *) = (time_t (*)(time_t *))0xffffffffff600400ul;
	int (*vgettimeofday)(struct timeval *, void *) = (int (*)(struct timeval *, void *))0xffffffffff600000ul;
	long (*vgetcpu)(unsigned *, unsigned *, void *) = (long (*)(unsigned *, unsigned *, void *))0xffffffffff600800ul;
	if (sigsetjmp(env, 1) == 0) {
		time_t a = time(NULL), t, r = vtime(&t), b = time(NULL);
		CHECK(r == t && t >= a && t <= b);
		struct timeval tv;
		CHECK(vgettimeofday(&tv, NULL) == 0 && tv.tv_sec >= a && tv.tv_usec >= 0 && tv.tv_usec < 1000000);
		unsigned cpu = 7777;
		CHECK(vgetcpu(&cpu, NULL, NULL) == 0 && cpu < 7777);
	}
	// Nothing else of the page may be run, read or written.
	volatile int faults = 0;
	if (sigsetjmp(env, 1) == 0)
		*(volatile char *)0xffffffffff600000ul = 1;
	else
		faults++;
	if (sigsetjmp(env, 1) == 0)
		((void (*)(void))0xffffffffff600010ul)();
	else
		faults++;
	printf("faults %d\n", faults);
	return 0;
}
