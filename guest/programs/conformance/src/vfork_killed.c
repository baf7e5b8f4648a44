// The parent that vfork suspends can be killed while it waits, by SIGKILL and by other fatal signals; its child continues.
#include "conformance.h"

#include <poll.h>

// Killed by sig while it waits: the child reports when it runs, and when it continues after its parent's death.
static void killed(int sig)
{
	int running[2], on[2], go[2];
	CHECK(pipe(running) == 0 && pipe(on) == 0 && pipe(go) == 0);
	pid_t parent = fork();
	CHECK(parent >= 0);
	if (parent == 0) {
		if (vfork() == 0) {
			char c;
			write(running[1], "r", 1);
			read(go[0], &c, 1);
			write(on[1], "o", 1);
			_exit(0);
		}
		_exit(1);
	}
	char c;
	CHECK(read(running[0], &c, 1) == 1);
	CHECK(kill(parent, sig) == 0);
	printf("parent: %s\n", status_text(wait_for(parent)));
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(read(on[0], &c, 1) == 1);
	printf("the child went on\n");
	for (int i = 0; i < 2; i++)
		CHECK(close(running[i]) == 0 && close(on[i]) == 0 && close(go[i]) == 0);
}

static volatile sig_atomic_t handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

// A signal with a handler waits until the child is gone.
static void waits(int sig)
{
	int running[2], go[2];
	CHECK(pipe(running) == 0 && pipe(go) == 0);
	pid_t parent = fork();
	CHECK(parent >= 0);
	if (parent == 0) {
		on_signal(sig, handler, 0);
		pid_t child = vfork();
		if (child == 0) {
			char c;
			write(running[1], "r", 1);
			read(go[0], &c, 1);
			_exit(3);
		}
		_exit(wait_for(child) == 3 << 8 && handled == 1 ? 0 : 1);
	}
	char c;
	CHECK(read(running[0], &c, 1) == 1);
	CHECK(kill(parent, sig) == 0);
	nap();
	CHECK(write(go[1], "g", 1) == 1);
	printf("parent: %s\n", status_text(wait_for(parent)));
}

int main(void)
{
	no_core();
	killed(SIGKILL);
	killed(SIGTERM);
	killed(SIGUSR2);
	waits(SIGUSR1);
	return 0;
}
