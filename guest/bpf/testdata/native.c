// Installs seccomp filters that it reads, each in a child, and prints how the kernel
// makes of them: a line with the errno of the installation and that of a system call.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The arguments of the call that filters look at.
#define CALL SYS_getpriority, 0x1122334455667788, 0x99aabbccddeeff00, 3, 0xffffffff, 0, 1UL << 63

static void child(int to, struct sock_filter *list, unsigned short n)
{
	struct sock_fprog program = {n, list};
	int result[2] = {0, 0};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		result[0] = errno;
	else if (syscall(CALL) == -1)
		result[1] = errno;
	// A filter may refuse a write: its result is the exit status, too.
	_exit(write(to, result, sizeof result) == sizeof result ? 0 : 1);
}

int main(void)
{
	unsigned short n;
	static struct sock_filter list[65536];
	while (fread(&n, sizeof n, 1, stdin) == 1) {
		if (fread(list, sizeof *list, n, stdin) != n)
			return 1;
		int ends[2], result[2] = {-1, -1};
		if (pipe(ends) != 0)
			return 1;
		pid_t pid = fork();
		if (pid == 0)
			child(ends[1], list, n);
		close(ends[1]);
		if (read(ends[0], result, sizeof result) != sizeof result)
			result[0] = -1;
		close(ends[0]);
		waitpid(pid, NULL, 0);
		printf("%d %d\n", result[0], result[1]);
	}
	return 0;
}
