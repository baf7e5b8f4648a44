// Stack overflow in a thread: its guard page faults, the handler runs on the alternate stack and escapes.
#include "conformance.h"

#include <setjmp.h>

static _Thread_local sigjmp_buf env;
static _Thread_local char *alt;
static atomic_int on_alt;

static void handler(int sig, siginfo_t *si, void *uc)
{
	char here;
	(void)uc;
	(void)si;
	if (&here >= alt && &here < alt + 65536)
		on_alt++;
	siglongjmp(env, sig);
}

static volatile int never;

__attribute__((noinline)) static int dive(volatile char *above)
{
	volatile char frame[512];
	frame[0] = above[0] + 1;
	if (never)
		return frame[0];
	return dive(frame) + frame[0];
}

static void *overflow(void *arg)
{
	alt = malloc(65536);
	stack_t ss = {.ss_sp = alt, .ss_size = 65536}, off = {.ss_flags = SS_DISABLE};
	CHECK(sigaltstack(&ss, NULL) == 0);
	for (volatile int i = 0; i < 3; i++) {
		volatile char c = 0;
		int sig = sigsetjmp(env, 1);
		if (sig == 0)
			dive(&c);
		CHECK(sig == SIGSEGV);
	}
	CHECK(sigaltstack(&off, NULL) == 0);
	free(alt);
	return arg;
}

int main(void)
{
	on_siginfo(SIGSEGV, handler, SA_ONSTACK);
	pthread_attr_t a;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstacksize(&a, 64 * 1024));
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		OK(pthread_create(&t[i], &a, overflow, (void *)(intptr_t)i));
	for (int i = 0; i < LEN(t); i++)
		printf("thread %ld survived\n", (long)finish(t[i]));
	printf("handlers on the alternate stack: %d\n", on_alt);
	return 0;
}
