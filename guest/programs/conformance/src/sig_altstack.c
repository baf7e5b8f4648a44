// sigaltstack: queries, handlers on it and not on it, nesting, refusals while in use, SS_AUTODISARM, one per thread.
#include "conformance.h"

#ifndef SS_AUTODISARM // of linux/signal.h, which conflicts with signal.h
#define SS_AUTODISARM (1u << 31)
#endif

enum { SIZE = 65536 };

static _Thread_local char *alt;
static _Thread_local volatile int on_alt, flags_inside;

static bool inside(void *p)
{
	return (char *)p >= alt && (char *)p < alt + SIZE;
}

static void handler(int sig)
{
	char here;
	stack_t ss, other = {.ss_sp = alt, .ss_size = SIZE};
	on_alt = inside(&here);
	CHECK(sigaltstack(NULL, &ss) == 0);
	flags_inside = ss.ss_flags;
	if (sig == SIGUSR2)
		SHOW(sigaltstack(&other, NULL));
	if (sig == SIGUSR2)
		raise(SIGUSR1);
}

static void show(const char *what)
{
	printf("%s: on it %d, flags%s%s%s\n", what, on_alt, flags_inside & SS_ONSTACK ? " ONSTACK" : "",
	       flags_inside & SS_DISABLE ? " DISABLE" : "", flags_inside & SS_AUTODISARM ? " AUTODISARM" : "");
}

static void *thread(void *arg)
{
	stack_t ss;
	CHECK(sigaltstack(NULL, &ss) == 0);
	CHECK(ss.ss_flags == SS_DISABLE);
	alt = malloc(SIZE);
	ss = (stack_t){.ss_sp = alt, .ss_size = SIZE};
	CHECK(sigaltstack(&ss, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		on_alt = 0;
		raise(SIGUSR1);
		CHECK(on_alt == 1);
		sched_yield();
	}
	ss.ss_flags = SS_DISABLE;
	CHECK(sigaltstack(&ss, NULL) == 0);
	free(alt);
	return arg;
}

// Linux keeps SS_AUTODISARM over execve, but not the stack.
static int executed(void)
{
	stack_t old;
	CHECK(sigaltstack(NULL, &old) == 0);
	printf("executed: disabled %d, autodisarm %d\n", (old.ss_flags & SS_DISABLE) != 0, (old.ss_flags & SS_AUTODISARM) != 0);
	return 0;
}

int main(int argc, char **argv)
{
	stack_t ss = {.ss_flags = SS_DISABLE}, old;
	if (argc > 1)
		return executed();
	alt = malloc(SIZE);
	CHECK(sigaltstack(&ss, NULL) == 0);
	CHECK(sigaltstack(NULL, &old) == 0);
	printf("at first disabled: %d\n", old.ss_flags == SS_DISABLE);
	on_signal(SIGUSR1, handler, SA_ONSTACK);
	raise(SIGUSR1);
	show("none set");
	ss = (stack_t){.ss_sp = alt, .ss_size = 100};
	SHOW(sigaltstack(&ss, NULL));
	ss = (stack_t){.ss_sp = alt, .ss_size = SIZE, .ss_flags = 77};
	SHOW(sigaltstack(&ss, NULL));
	ss.ss_flags = 0;
	SHOW(sigaltstack(&ss, &old));
	CHECK(sigaltstack(NULL, &old) == 0);
	printf("same: %d %d %d\n", old.ss_sp == alt, (int)old.ss_size, old.ss_flags);
	raise(SIGUSR1);
	show("with SA_ONSTACK");
	on_signal(SIGUSR1, handler, 0);
	raise(SIGUSR1);
	show("without SA_ONSTACK");
	on_signal(SIGUSR1, handler, SA_ONSTACK);
	on_signal(SIGUSR2, handler, SA_ONSTACK);
	raise(SIGUSR2);
	show("nested");
	ss.ss_flags = SS_AUTODISARM;
	SHOW(sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	show("autodisarm");
	CHECK(sigaltstack(NULL, &old) == 0);
	printf("armed again: %d\n", old.ss_sp == alt);
	on_signal(SIGUSR1, handler, 0);
	raise(SIGUSR1);
	show("autodisarm without SA_ONSTACK");
	on_signal(SIGUSR1, handler, SA_ONSTACK);

	// A child has its parent's, a new thread none.
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		raise(SIGUSR1);
		_exit(on_alt);
	}
	printf("child: %s\n", status_text(wait_for(pid)));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", argv[0], "executed", NULL);
		_exit(1);
	}
	printf("child: %s\n", status_text(wait_for(pid)));
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(thread, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	ss.ss_flags = SS_DISABLE;
	SHOW(sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	show("disabled");
	ss.ss_flags = SS_DISABLE | SS_AUTODISARM;
	SHOW(sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	show("disabled with SS_AUTODISARM");
	return 0;
}
