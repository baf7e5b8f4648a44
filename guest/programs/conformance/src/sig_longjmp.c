// siglongjmp out of handlers, many times, with and without saving the mask, from the alternate stack, in threads.
#include "conformance.h"

#include <setjmp.h>

static _Thread_local sigjmp_buf env;

static void handler(int sig)
{
	siglongjmp(env, sig);
}

static int blocked(int sig)
{
	sigset_t s;
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &s) == 0);
	return sigismember(&s, sig);
}

static void *many(void *arg)
{
	volatile int n = 0;
	char *alt = malloc(65536);
	stack_t ss = {.ss_sp = alt, .ss_size = 65536}, off = {.ss_flags = SS_DISABLE};
	CHECK(sigaltstack(&ss, NULL) == 0);
	for (volatile int i = 0; i < 200; i++) {
		int sig = sigsetjmp(env, 1);
		if (sig == 0) {
			if (i % 3 == 0)
				*(volatile int *)8 = 0;
			else if (i % 3 == 1)
				raise(SIGUSR1);
			else
				__asm__ volatile("ud2");
			CHECK(false);
		}
		n += sig;
		CHECK(!blocked(sig));
		stack_t now;
		CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags == 0);
	}
	CHECK(sigaltstack(&off, NULL) == 0);
	free(alt);
	(void)arg;
	return (void *)(intptr_t)n;
}

int main(void)
{
	on_signal(SIGSEGV, handler, SA_ONSTACK);
	on_signal(SIGUSR1, handler, SA_ONSTACK);
	on_signal(SIGILL, handler, 0);
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(many, NULL);
	for (int i = 0; i < LEN(t); i++)
		printf("thread: %ld\n", (long)finish(t[i]));

	if (sigsetjmp(env, 1) == 0)
		raise(SIGUSR1);
	printf("mask saved: blocked %d\n", blocked(SIGUSR1));
	if (sigsetjmp(env, 0) == 0)
		raise(SIGUSR1);
	printf("mask not saved: blocked %d\n", blocked(SIGUSR1));
	return 0;
}
