// Capabilities of root: capset, the bounding and ambient sets, keepcaps, secure bits, effects of setuid and execve, and the checks they override.
// root: yes
#include "conformance.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/auxv.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

// Some hosts withhold capabilities of root; the program uses only these.
#define B(c) (1u << (c))
#define LOOKED_AT                                                                                                      \
	(B(CAP_CHOWN) | B(CAP_DAC_OVERRIDE) | B(CAP_DAC_READ_SEARCH) | B(CAP_FOWNER) | B(CAP_KILL) | B(CAP_SETGID) |   \
	 B(CAP_SETUID) | B(CAP_SETPCAP) | B(CAP_NET_BIND_SERVICE))

struct caps {
	unsigned effective, permitted, inheritable;
};

static int get(struct caps *c)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	int r = syscall(SYS_capget, &h, d);
	*c = (struct caps){d[0].effective, d[0].permitted, d[0].inheritable};
	return r;
}

static int set(unsigned effective, unsigned permitted, unsigned inheritable)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{effective, permitted, inheritable}, {0}};
	return syscall(SYS_capset, &h, d);
}

static int ambient(int op, int cap) { return prctl(PR_CAP_AMBIENT, op, cap, 0, 0); }

static void show(const char *what)
{
	struct caps c;
	CHECK(get(&c) == 0);
	printf("%s: effective %x permitted %x inheritable %x", what, c.effective & LOOKED_AT, c.permitted & LOOKED_AT,
	       c.inheritable & LOOKED_AT);
	char buf[4096], *at;
	CHECK(read_file("/proc/self/status", buf, sizeof buf) > 0);
	static const char *names[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
	for (int i = 0; i < LEN(names); i++) {
		CHECK((at = strstr(buf, names[i])) != NULL);
		printf(" %llx", strtoull(at + 8, NULL, 16) & LOOKED_AT);
	}
	printf(" ids %d %d\n", getuid(), geteuid());
}

// in_child runs f in a child process.
static void in_child(void (*f)(void))
{
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		f();
		_exit(0);
	}
	int status = wait_for(p);
	CHECK(status == 0);
}

// again executes this program, which then prints its capabilities.
static void again(const char *file)
{
	char *argv[] = {(char *)file, "shown", NULL};
	execv(file, argv);
	printf("exec: %s\n", errname(errno));
}

static void sets(void)
{
	show("root");
	SHOW(set(LOOKED_AT, LOOKED_AT, B(CAP_KILL)));
	show("less");
	SHOW(set(LOOKED_AT | B(CAP_SYS_ADMIN), LOOKED_AT | B(CAP_SYS_ADMIN), 0));
	SHOW(set(B(CAP_KILL), 0, 0));
	SHOW(set(B(CAP_KILL), B(CAP_KILL) | B(CAP_SETUID), B(CAP_KILL)));
	show("two");
	SHOW(set(0, B(CAP_KILL), B(CAP_SETUID) | B(CAP_CHOWN)));
	SHOW(set(0, B(CAP_KILL), B(CAP_KILL)));
	SHOW(setgroups(0, NULL));
	SHOW(chown(".", 1, 1));
	show("one, not in force");
	again("/proc/self/exe");
}

static void bounding(void)
{
	SHOW(prctl(PR_CAPBSET_READ, CAP_KILL));
	SHOW(prctl(PR_CAPBSET_DROP, CAP_KILL));
	SHOW(prctl(PR_CAPBSET_READ, CAP_KILL));
	SHOW(prctl(PR_CAPBSET_READ, 63));
	SHOW(prctl(PR_CAPBSET_DROP, 64));
	show("bounded");
	SHOW(set(LOOKED_AT & ~B(CAP_SETPCAP), LOOKED_AT & ~B(CAP_SETPCAP), 0));
	SHOW(prctl(PR_CAPBSET_DROP, CAP_CHOWN));
	again("/proc/self/exe");
}

static void users(void)
{
	SHOW(setresuid(-1, 1000, -1));
	show("effective user");
	SHOW(setresuid(-1, 0, -1));
	show("root again");
	SHOW(setfsuid(1000));
	show("file user");
	SHOW(setfsuid(0));
	show("file user root");
	SHOW(setuid(1000));
	show("user");
	SHOW(setuid(0));
	SHOW(prctl(PR_GET_DUMPABLE));
	again("/proc/self/exe");
}

static void keep(void)
{
	SHOW(prctl(PR_GET_KEEPCAPS));
	SHOW(prctl(PR_SET_KEEPCAPS, 1));
	SHOW(prctl(PR_SET_KEEPCAPS, 2));
	SHOW(setresuid(1000, 1000, 1000));
	show("kept");
	SHOW(set(B(CAP_KILL) | B(CAP_CHOWN), B(CAP_KILL) | B(CAP_CHOWN), B(CAP_KILL)));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, CAP_CHOWN));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, 99));
	SHOW(ambient(PR_CAP_AMBIENT_IS_SET, CAP_KILL));
	SHOW(ambient(PR_CAP_AMBIENT_IS_SET, CAP_CHOWN));
	SHOW(ambient(77, CAP_CHOWN));
	show("ambient");
	SHOW(prctl(PR_GET_KEEPCAPS));
	again("/proc/self/exe");
}

static void ambient_lost(void)
{
	SHOW(set(LOOKED_AT, LOOKED_AT, LOOKED_AT));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, CAP_CHOWN));
	SHOW(ambient(PR_CAP_AMBIENT_LOWER, CAP_CHOWN));
	show("two less one");
	SHOW(set(LOOKED_AT, LOOKED_AT, 0));
	show("not inheritable");
	SHOW(set(LOOKED_AT, LOOKED_AT, LOOKED_AT));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
	SHOW(ambient(PR_CAP_AMBIENT_IS_SET, CAP_KILL));
	SHOW(prctl(PR_SET_SECUREBITS, SECBIT_NO_CAP_AMBIENT_RAISE));
	SHOW(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
}

static void secure(void)
{
	SHOW(prctl(PR_GET_SECUREBITS));
	SHOW(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED));
	SHOW(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
	SHOW(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP_LOCKED));
	SHOW(prctl(PR_SET_SECUREBITS, 1 << 20));
	SHOW(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NOROOT));
	SHOW(prctl(PR_GET_SECUREBITS));
	SHOW(setresuid(1000, 1000, 1000));
	show("no fixup");
	SHOW(setresuid(0, 0, 0));
	again("/proc/self/exe");
}

// files shows operations on files that depend on capabilities.
static void files(const char *what)
{
	int fd;
	printf("%s:\n", what);
	SHOW((fd = open("secret", O_RDONLY)) >= 0);
	close(fd);
	SHOW((fd = open("secret", O_WRONLY)) >= 0);
	close(fd);
	SHOW(access("secret", R_OK));
	SHOW(access("script", X_OK));
	SHOW(access("none", X_OK));
	SHOW(faccessat(AT_FDCWD, "secret", R_OK, AT_EACCESS));
	SHOW((fd = open("folder/inside", O_RDONLY)) >= 0);
	close(fd);
	SHOW(mkdir("folder/new", 0700));
	rmdir("folder/new");
	SHOW(chmod("secret", 0600));
	SHOW(chown("secret", 7, 7));
	SHOW(unlink("sticky/file"));
	SHOW(kill(1, 0));
}

static void rights(void)
{
	CHECK(mkdir("folder", 0700) == 0 && mkdir("sticky", 01777) == 0 && chmod("sticky", 01777) == 0);
	umask(0);
	static const struct { const char *name; int mode; } made[] = {
		{"secret", 0600}, {"script", 0700}, {"none", 0600}, {"folder/inside", 0600}};
	for (int i = 0; i < LEN(made); i++) {
		write_file(made[i].name, "text");
		CHECK(chmod(made[i].name, made[i].mode) == 0 && chown(made[i].name, 7, 7) == 0);
	}
	CHECK(chown("folder", 7, 7) == 0 && chown("sticky", 7, 7) == 0);
	static const unsigned have[] = {0, B(CAP_DAC_OVERRIDE), B(CAP_DAC_READ_SEARCH), B(CAP_FOWNER), B(CAP_CHOWN), B(CAP_KILL)};
	for (int i = 0; i < LEN(have); i++) {
		write_file("sticky/file", "x");
		CHECK(chown("sticky/file", 8, 8) == 0);
		fflush(stdout);
		pid_t p = fork();
		CHECK(p >= 0);
		if (p == 0) {
			CHECK(setgroups(0, NULL) == 0 && setresgid(1000, 1000, 1000) == 0);
			CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0 && setresuid(1000, 1000, 1000) == 0);
			CHECK(set(have[i], have[i], 0) == 0);
			char name[32];
			snprintf(name, sizeof name, "capabilities %x", have[i]);
			files(name);
			_exit(0);
		}
		CHECK(wait_for(p) == 0);
		unlink("sticky/file");
		CHECK(chown("secret", 7, 7) == 0);
	}
	// Root without capabilities is an ordinary user who owns root's files.
	CHECK(set(0, LOOKED_AT, 0) == 0);
	files("root without");
}

static void copy(const char *from, const char *to)
{
	char buf[4096];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0755);
	ssize_t n;
	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof buf)) > 0)
		CHECK(write(out, buf, n) == n);
	close(in);
	close(out);
}

// A set-user-id program of root that root runs, and one of user 1001.
static void set_user_id(void)
{
	copy("/proc/self/exe", "as-root");
	CHECK(chmod("as-root", 04755) == 0);
	copy("/proc/self/exe", "as-other");
	CHECK(chown("as-other", 1001, 1001) == 0 && chmod("as-other", 06755) == 0);
	CHECK(chmod(".", 0755) == 0);
	for (int i = 0; i < 5; i++) {
		fflush(stdout);
		pid_t p = fork();
		CHECK(p >= 0);
		if (p == 0) {
			CHECK(setgroups(0, NULL) == 0);
			if (i != 4)
				CHECK(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0);
			if (i == 3)
				CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
			if (i == 2)
				again("/proc/self/exe");
			again(i == 1 || i == 4 ? "./as-other" : "./as-root");
			_exit(1);
		}
		CHECK(wait_for(p) == 0);
	}
}

static void *other_thread(void *arg)
{
	show("the other thread");
	return arg;
}

// Each thread has credentials of its own.
static void *unprivileged(void *arg)
{
	CHECK(syscall(SYS_setresuid, 1000, 1000, 1000) == 0);
	SHOW(chown("thread", 5, 5));
	return arg;
}

static void threads(void)
{
	write_file("thread", "");
	finish(start(unprivileged, NULL));
	SHOW(chown("thread", 5, 5));
	finish(start(other_thread, NULL));
	CHECK(setresuid(1000, 1000, 1000) == 0); // for all threads, by the C library
	finish(start(other_thread, NULL));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "shown") == 0) {
		show("new program");
		printf("secure %lu, ids of it %lu %lu, keep %d, dumpable %d, groups %d %d\n", getauxval(AT_SECURE), getauxval(AT_UID),
		       getauxval(AT_EUID), prctl(PR_GET_KEEPCAPS), prctl(PR_GET_DUMPABLE), getgid(), getegid());
		return 0;
	}
	in_child(sets);
	in_child(bounding);
	in_child(users);
	in_child(keep);
	in_child(ambient_lost);
	in_child(secure);
	in_child(rights);
	in_child(set_user_id);
	in_child(threads);
	return 0;
}
