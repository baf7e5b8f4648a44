// A fault whose signal is blocked or ignored kills all the same; so does one inside its own handler; raise does not.
#include "conformance.h"

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

static void fault(void)
{
	*(volatile int *)16 = 1;
}

static void block(int sig)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, sig);
	CHECK(sigprocmask(SIG_BLOCK, &s, NULL) == 0);
}

static void refault(int sig)
{
	printf("in the handler of %s\n", sigabbrev_np(sig));
	fault();
}

static void blocked(void) { block(SIGSEGV); fault(); }
static void ignored(void) { on_signal(SIGSEGV, SIG_IGN, 0); fault(); }
static void handled_blocked(void) { on_signal(SIGSEGV, refault, 0); block(SIGSEGV); fault(); }
static void twice(void) { on_signal(SIGSEGV, refault, 0); fault(); }
static void raised_blocked(void) { block(SIGSEGV); raise(SIGSEGV); }
static void raised_ignored(void) { on_signal(SIGSEGV, SIG_IGN, 0); raise(SIGSEGV); }
static void illegal(void) { __asm__ volatile("ud2"); }
static void trap(void) { __asm__ volatile("int3"); }
static void trap_ignored(void) { on_signal(SIGTRAP, SIG_IGN, 0); __asm__ volatile("int3"); }

static void no_stack(void)
{
	// The handler's frame cannot be written: the process dies.
	on_signal(SIGUSR1, refault, 0);
	__asm__ volatile("mov %0, %%edi\n"
			 "mov %1, %%eax\n"
			 "mov $64, %%rsp\n"
			 "mov %2, %%esi\n"
			 "syscall\n"
			 "hlt\n"
			 :
			 : "r"(getpid()), "i"(SYS_kill), "i"(SIGUSR1));
}

int main(void)
{
	in_child("blocked", blocked);
	in_child("ignored", ignored);
	in_child("handled but blocked", handled_blocked);
	in_child("again in the handler", twice);
	in_child("raised, blocked", raised_blocked);
	in_child("raised, ignored", raised_ignored);
	in_child("illegal instruction", illegal);
	in_child("breakpoint", trap);
	in_child("breakpoint, ignored", trap_ignored);
	in_child("no stack for the handler", no_stack);
	return 0;
}
