// SA_SIGINFO: number, code, sender and value for kill, raise, tgkill, sigqueue, timers and children.
#include "conformance.h"

static siginfo_t last;
static volatile sig_atomic_t count;

static void handler(int sig, siginfo_t *si, void *uc)
{
	CHECK(sig == si->si_signo && uc != NULL);
	last = *si;
	count++;
}

static const char *code(int c)
{
	return c == SI_USER ? "SI_USER" : c == SI_TKILL ? "SI_TKILL" : c == SI_QUEUE ? "SI_QUEUE" : c == SI_TIMER ? "SI_TIMER" : c == SI_KERNEL ? "SI_KERNEL" : "other";
}

static void show(const char *what, int expect)
{
	while (count < expect)
		nap();
	printf("%s: SIG%s %s", what, last.si_signo < 32 ? sigabbrev_np(last.si_signo) : "RT", code(last.si_code));
	if (last.si_code == SI_USER || last.si_code == SI_TKILL || last.si_code == SI_QUEUE)
		printf(" from me %d, my user %d", last.si_pid == getpid(), last.si_uid == getuid());
	if (last.si_code == SI_QUEUE || last.si_code == SI_TIMER)
		printf(" value %d", last.si_value.sival_int);
	printf("\n");
	count = 0;
}

int main(void)
{
	on_siginfo(SIGUSR1, handler, 0);
	on_siginfo(SIGALRM, handler, 0);
	on_siginfo(SIGRTMIN + 2, handler, 0);
	SHOW(kill(getpid(), SIGUSR1));
	show("kill", 1);
	SHOW(raise(SIGUSR1));
	show("raise", 1);
	SHOW(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
	show("tgkill", 1);
	SHOW(syscall(SYS_tkill, gettid(), SIGUSR1));
	show("tkill", 1);
	SHOW(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 42}));
	show("sigqueue", 1);
	SHOW(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = -7}));
	show("sigqueue of a real-time signal", 1);
	alarm(0);
	timer_t t;
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 99};
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
	struct itimerspec it = {.it_value = {0, MSEC}};
	CHECK(timer_settime(t, 0, &it, NULL) == 0);
	show("timer", 1);
	CHECK(timer_delete(t) == 0);
	ualarm(1000, 0);
	show("ualarm", 1);

	// From a child: the child's process id.
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(kill(getppid(), SIGUSR1) == 0);
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	while (count < 1)
		nap();
	printf("child: %s, sender right %d\n", code(last.si_code), last.si_pid == pid);
	return 0;
}
