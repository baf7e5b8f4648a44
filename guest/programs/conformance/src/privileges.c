// Calls that need privileges for some arguments, with arguments that need none: ids set to their present values, capabilities, limits.
#include "conformance.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/personality.h>
#include <sys/fsuid.h>

static int allowed(long r) { return r == 0 || (r == -1 && errno == EPERM); }

static void capabilities(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	SHOW(syscall(SYS_capget, &h, d));
	SHOW(syscall(SYS_capset, &h, d));
	h.pid = getpid();
	SHOW(syscall(SYS_capget, &h, d));
	h.pid = 1 << 28;
	SHOW(syscall(SYS_capget, &h, d));
	h.pid = -1;
	SHOW(syscall(SYS_capget, &h, d));
	h.pid = getppid();
	SHOW(syscall(SYS_capset, &h, d));
	h = (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_1, 0};
	memset(d, 0x55, sizeof d);
	SHOW(syscall(SYS_capget, &h, d));
	printf("the second is untouched: %d\n", d[1].effective == 0x55555555);
	h.version = 1;
	SHOW(syscall(SYS_capget, &h, NULL));
	printf("%d\n", h.version == _LINUX_CAPABILITY_VERSION_3);
	h.version = 1;
	SHOW(syscall(SYS_capget, &h, d));
}

static void ids(void)
{
	SHOW(setreuid(-1, -1));
	SHOW(setregid(-1, -1));
	SHOW(setregid(getgid(), getegid()));
	SHOW(setreuid(getuid(), geteuid()));
	SHOW(setfsgid(-1) == (int)getegid());
	SHOW(setfsuid(-1) == (int)geteuid());
	gid_t list[64];
	int n = getgroups(64, list);
	CHECK(n >= 0 && allowed(setgroups(n, list)));
	CHECK(getgroups(64, list) == n);
	SHOW(setgroups(1 << 20, list) == 0 ? 0 : errno == EINVAL || errno == EPERM);
	SHOW(syscall(SYS_getgroups, -1, list));
}

static void limits(void)
{
	struct rlimit l;
	SHOW(syscall(SYS_getrlimit, RLIMIT_NOFILE, &l));
	l.rlim_cur = 10;
	SHOW(syscall(SYS_setrlimit, RLIMIT_NOFILE, &l));
	SHOW(dup2(0, 10));
	SHOW(dup2(0, 9));
	SHOW(syscall(SYS_setrlimit, 99, &l));
	l.rlim_cur = l.rlim_max + 1;
	if (l.rlim_max != RLIM_INFINITY)
		SHOW(syscall(SYS_setrlimit, RLIMIT_NOFILE, &l));
}

int main(void)
{
	SHOW(personality(0xffffffff));
	SHOW(chroot("none"));
	ids();
	limits();
	capabilities();
	return 0;
}
