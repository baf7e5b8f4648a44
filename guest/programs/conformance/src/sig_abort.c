// abort: with and without handler, ignored, blocked, escaped by siglongjmp, from a thread; raise of every fatal kind.
#include "conformance.h"

#include <setjmp.h>

static sigjmp_buf env;

static void say(int sig)
{
	printf("handler of %s\n", sigabbrev_np(sig));
}

static void jump(int sig)
{
	siglongjmp(env, sig);
}

static void in_child(const char *what, void (*f)(void))
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		no_core();
		f();
		_exit(0);
	}
	printf("%s: %s\n", what, status_text(wait_for(pid)));
}

static void plain(void) { abort(); }
static void handled(void) { on_signal(SIGABRT, say, 0); abort(); }
static void ignored(void) { on_signal(SIGABRT, SIG_IGN, 0); abort(); }

static void blocked(void)
{
	sigset_t s;
	sigfillset(&s);
	sigprocmask(SIG_BLOCK, &s, NULL);
	abort();
}

static void escaped(void)
{
	on_signal(SIGABRT, jump, 0);
	if (sigsetjmp(env, 1) == 0)
		abort();
	printf("escaped\n");
}

static void *aborts(void *arg)
{
	abort();
	return arg;
}

static void in_thread(void)
{
	finish(start(aborts, NULL));
}

static void by_exit_handlers(void)
{
	atexit(abort);
	exit(3);
}

int main(void)
{
	in_child("plain", plain);
	in_child("handled", handled);
	in_child("ignored", ignored);
	in_child("blocked", blocked);
	in_child("escaped", escaped);
	in_child("in a thread", in_thread);
	in_child("in an exit handler", by_exit_handlers);
	return 0;
}
