// The default action of every signal, seen by the parent: death, stop, or nothing.
#include "conformance.h"

int main(void)
{
	no_core();
	for (int sig = 1; sig <= 34; sig++) {
		if (sig == 32 || sig == 33)
			continue; // used by glibc itself
		int n = sig == 34 ? SIGRTMIN : sig;
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			// A group of its own that is not orphaned, so that the stop
			// signals of terminals work.
			CHECK(setpgid(0, 0) == 0);
			kill(getpid(), n);
			_exit(0);
		}
		int status;
		CHECK(waitpid(pid, &status, WUNTRACED) == pid);
		printf("%s: %s\n", n >= 34 ? "RTMIN" : sigabbrev_np(n),
		       n >= 34 && WIFSIGNALED(status) && WTERMSIG(status) == n ? "signal RTMIN" : status_text(status));
		if (WIFSTOPPED(status)) {
			CHECK(kill(pid, SIGCONT) == 0);
			printf("  continued: %s\n", status_text(wait_for(pid)));
		}
	}
	return 0;
}
