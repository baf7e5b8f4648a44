// kill, tkill, tgkill, rt_sigqueueinfo and friends: groups, zero signals, missing targets, forbidden codes.
#include "conformance.h"

#include <sys/prctl.h>

static volatile sig_atomic_t hits;
static siginfo_t last;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	last = *si;
	hits++;
}

int main(void)
{
	on_siginfo(SIGUSR1, handler, SA_RESTART);
	pid_t me = getpid(), none = 999999999;
	SHOW(kill(me, 0));
	SHOW(kill(none, 0));
	SHOW(kill(none, SIGUSR1));
	SHOW(kill(me, -1));
	SHOW(kill(me, 65));
	SHOW(syscall(SYS_tkill, gettid(), 0));
	SHOW(syscall(SYS_tkill, 0, SIGUSR1));
	SHOW(syscall(SYS_tkill, -1, SIGUSR1));
	SHOW(syscall(SYS_tkill, none, SIGUSR1));
	SHOW(syscall(SYS_tgkill, me, none, SIGUSR1));
	SHOW(syscall(SYS_tgkill, none, gettid(), SIGUSR1));
	SHOW(syscall(SYS_tgkill, 0, gettid(), SIGUSR1));
	SHOW(syscall(SYS_tgkill, me, gettid(), 65));
	SHOW(sigqueue(none, SIGUSR1, (union sigval){0}));
	SHOW(sigqueue(me, 65, (union sigval){0}));
	printf("hits %d\n", hits);

	// A process may send any code to itself, to others only negative ones.
	siginfo_t si = {.si_signo = SIGUSR1, .si_code = SI_USER};
	si.si_value.sival_int = 11;
	SHOW(syscall(SYS_rt_sigqueueinfo, me, SIGUSR1, &si));
	printf("code %d\n", last.si_code);
	si.si_code = SI_MESGQ;
	SHOW(syscall(SYS_rt_tgsigqueueinfo, me, gettid(), SIGUSR1, &si));
	printf("code %d value %d\n", last.si_code, last.si_value.sival_int);
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char c;
		close(ends[1]);
		CHECK(read(ends[0], &c, 1) == 0);
		_exit(hits);
	}
	si.si_code = SI_USER;
	SHOW(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &si));
	si.si_code = SI_TKILL;
	SHOW(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &si));
	si.si_code = SI_QUEUE;
	SHOW(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &si));
	CHECK(close(ends[1]) == 0);
	printf("child: %s\n", status_text(wait_for(pid)));
	SHOW(kill(pid, 0));

	// A whole process group, with the sender.
	CHECK(setpgid(0, 0) == 0 || getpgrp() == getpid());
	int *ready = shared_memory(4096);
	pid_t child[3];
	for (int i = 0; i < LEN(child); i++) {
		hits = 0;
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (child[i] == 0) {
			__atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
			while (hits == 0)
				nap();
			_exit(10 + hits);
		}
	}
	while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < LEN(child))
		nap();
	hits = 0;
	SHOW(kill(0, SIGUSR1));
	for (int i = 0; i < LEN(child); i++)
		printf("child %d: %s\n", i, status_text(wait_for(child[i])));
	printf("own hits %d\n", hits);
	SHOW(killpg(getpgrp(), SIGUSR1));
	SHOW(kill(-getpgrp(), 0));
	SHOW(kill(-none, SIGUSR1));
	printf("own hits %d\n", hits);
	return 0;
}
