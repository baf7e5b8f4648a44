// Tries to get at a file of the host that lies outside of the visible folders,
// and at other things that are not the guest's, and prints the results. It
// runs in a folder that the test has filled with traps.
//
// usage: escape folder:SECRET-FOLDER PORT
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static char secret[4000], buf[8192];

// outcome prints an errno, or the bytes that could be read.
static void outcome(const char *how, int fd) {
	if (fd < 0) {
		printf("%s: %s\n", how, strerrorname_np(errno));
		return;
	}
	ssize_t n = read(fd, buf, 100);
	if (n < 0) printf("%s: opened, then %s\n", how, strerrorname_np(errno));
	else printf("%s: opened, %zd bytes: %.*s\n", how, n, (int)n, buf);
	close(fd);
}

static void get(const char *how, const char *format, ...) {
	char path[9000];
	va_list list;
	va_start(list, format);
	vsnprintf(path, sizeof path, format, list);
	va_end(list);
	outcome(how, open(path, O_RDONLY));
}

static const char *up(int n) {
	static char path[4000];
	path[0] = 0;
	while (n-- > 0) strcat(path, "../");
	return path;
}

static void paths(void) {
	get("absolute", "%s/key", secret);
	get("dots", "%s%s/key", up(60), secret + 1);
	get("many dots", "%s%s/key", up(1000), secret + 1);
	get("slashes", "///%s///.//key", secret);
	get("long", "%s%s/key", up(1400), secret + 1);
	get("root", "/proc/self/root%s/key", secret);
	get("root twice", "/proc/self/root/proc/self/root%s/key", secret);
	get("thread's root", "/proc/thread-self/root%s/key", secret);
	get("task's root", "/proc/self/task/%d/root%s/key", (int)getpid(), secret);
	get("cwd", "/proc/self/cwd/../outside/key");
	get("exe", "/proc/self/exe/../../outside/key");
	get("parent's root", "/proc/%d/root%s/key", (int)getppid(), secret);
	get("init's root", "/proc/1/root%s/key", secret);
	for (int fd = 0; fd < 10; fd++) {
		snprintf(buf, sizeof buf, "/proc/self/fd/%d/..%s/key", fd, secret);
		if (open(buf, O_RDONLY) >= 0) printf("through descriptor %d\n", fd);
	}
	get("home", "/home");
	get("shadow", "/etc/shadow");
	get("boot", "/boot/vmlinuz");
	get("memory", "/dev/mem");
	get("kernel memory", "/proc/kcore");
	get("disk", "/dev/sda");
	get("kernel log", "/dev/kmsg");
	get("heddle's environment", "/proc/%d/environ", (int)getppid());
}

static void links(const char *which) {
	static const char *const traps[] = {"absolute", "relative", "folder", "root", "through-root", "through-fd", "dots", "chain"};
	char how[100];
	for (int i = 0; i < (int)(sizeof traps / sizeof *traps); i++) {
		snprintf(how, sizeof how, "%s link %s", which, traps[i]);
		const char *more = strcmp(traps[i], "folder") == 0 ? "/key" : strcmp(traps[i], "root") == 0 ? "" : "";
		if (strcmp(traps[i], "root") == 0) get(how, "%s-root%s/key", which, secret);
		else get(how, "%s-%s%s", which, traps[i], more);
	}
}

// lay makes the traps that the test has made on the host once more.
static void lay(void) {
	char path[9000];
	int bad = 0;
	snprintf(path, sizeof path, "%s/key", secret);
	bad += symlink(path, "own-absolute");
	bad += symlink("../outside/key", "own-relative");
	bad += symlink(secret, "own-folder");
	bad += symlink("/", "own-root");
	snprintf(path, sizeof path, "/proc/self/root%s/key", secret);
	bad += symlink(path, "own-through-root");
	bad += symlink("/proc/self/fd/3", "own-through-fd");
	snprintf(path, sizeof path, "%s%s/key", up(100), secret + 1);
	bad += symlink(path, "own-dots");
	bad += symlink("own-relative", "own-chain");
	if (bad) printf("symlink: %s\n", strerrorname_np(errno));
}

// moved opens a folder, moves it, and goes up from where it is open.
static void moved(void) {
	mkdir("a", 0700);
	mkdir("a/b", 0700);
	int fd = open("a/b", O_RDONLY | O_DIRECTORY);
	if (rename("a/b", "/tmp/b")) printf("rename: %s\n", strerrorname_np(errno));
	for (int n = 1; n < 8; n++) {
		snprintf(buf, sizeof buf, "%soutside/key", up(n));
		int found = openat(fd, buf, O_RDONLY);
		if (found >= 0) outcome("above a folder that was moved", found);
	}
	if (rename("host-folder", "/tmp/folder")) printf("rename: %s\n", strerrorname_np(errno));
	get("a link that was moved", "/tmp/folder/key");
	if (link("host-absolute", "/tmp/linked")) printf("link: %s\n", strerrorname_np(errno));
	get("a link that was linked", "/tmp/linked");
	if (linkat(AT_FDCWD, "host-absolute", AT_FDCWD, "/tmp/followed", AT_SYMLINK_FOLLOW) == 0) printf("linkat followed\n");
	close(fd);
}

// jail leaves a changed root in the way that works on Linux.
static void jail(void) {
	mkdir("jail", 0700);
	int here = open(".", O_RDONLY | O_DIRECTORY);
	if (chroot("jail")) {
		printf("chroot: %s\n", strerrorname_np(errno));
		return;
	}
	if (fchdir(here)) printf("fchdir: %s\n", strerrorname_np(errno));
	for (int i = 0; i < 60; i++)
		if (chdir("..")) printf("chdir: %s\n", strerrorname_np(errno));
	if (chroot(".")) printf("chroot: %s\n", strerrorname_np(errno));
	get("out of a jail", "%s/key", secret);
}

static void try(const char *name, long r) { printf("%s: %s\n", name, r == -1 ? strerrorname_np(errno) : "ok"); }

static void machine(int port) {
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	try("connect to the host", connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&in, sizeof in));
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "socket"};
	try("connect to the host's socket", connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, sizeof un));
	try("raw socket", socket(AF_INET, SOCK_RAW, 1));
	try("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
	try("block device", mknod("disk", S_IFBLK | 0600, makedev(8, 0)) || open("disk", O_RDONLY) < 0 ? -1 : 0);
	try("mount", mount("/", "jail", NULL, MS_BIND, NULL));
	try("ptrace", ptrace(PTRACE_ATTACH, 1, 0, 0));
	char one;
	struct iovec local = {&one, 1}, remote = {(void *)0x400000, 1};
	try("memory of process 1", process_vm_readv(1, &local, 1, &remote, 1, 0));
	try("kill process 1", kill(1, 9));
	try("kill the parent", kill(getppid(), 9));
	try("sysrq", open("/proc/sysrq-trigger", O_WRONLY));
	try("module", syscall(SYS_finit_module, 0, "", 0));
	try("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0x1234567, 0));
}

// changes writes where it may not: to the program, below mounts, over links.
static void changes(void) {
	char path[9000];
	snprintf(path, sizeof path, "%s/key", secret);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	try("write the secret", fd);
	static const char *const names[] = {"own-relative", "own-absolute", "own-chain", "inside", "/ro/file", "/bin/true", "/etc/passwd"};
	for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
		fd = open(names[i], O_WRONLY | O_TRUNC | O_CREAT, 0600);
		if (fd >= 0 && write(fd, "changed\n", 8) != 8) printf("write: %s\n", strerrorname_np(errno));
		close(fd);
	}
	try("unlink in the read-only mount", unlink("/ro/other"));
	try("rename in the read-only mount", rename("/ro/file", "/ro/moved"));
	try("chmod in the read-only mount", chmod("/ro/moved", 0777));
	get("the written file", "/ro/moved");
	get("the removed file", "/ro/other");
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	snprintf(secret, sizeof secret, "%s", argv[1] + sizeof "folder:" - 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	paths();
	links("host");
	lay();
	links("own");
	moved();
	changes();
	machine(atoi(argv[2]));
	jail();
	return 0;
}
