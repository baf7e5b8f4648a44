// Shared by the programs about seccomp: filters for one system call, and children that
// install them.
#ifndef CONFORMANCE_SECCOMP_H
#define CONFORMANCE_SECCOMP_H

#include "conformance.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define NUMBER offsetof(struct seccomp_data, nr)

static inline long seccomp(unsigned op, unsigned flags, void *arg)
{
	return syscall(SYS_seccomp, op, flags, arg);
}

static inline long install(struct sock_filter *list, unsigned short n, unsigned flags)
{
	struct sock_fprog program = {n, list};
	return seccomp(SECCOMP_SET_MODE_FILTER, flags, &program);
}

// install_for installs a filter that returns action for a system call, and ALLOW for all others.
static inline long install_for(long number, unsigned action, unsigned flags)
{
	struct sock_filter list[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	return install(list, LEN(list), flags);
}

static inline void no_new_privileges(void)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

// in_child runs f in a child, which may die from it, and prints the child's status.
static inline void in_child(const char *what, void (*f)(void))
{
	printf("-- %s\n", what);
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		no_core();
		no_new_privileges();
		f();
		exit(0);
	}
	printf("%s: %s\n", what, status_text(wait_for(pid)));
}

#endif
