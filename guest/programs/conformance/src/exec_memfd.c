// Running a file without a name: fexecve, execveat with AT_EMPTY_PATH, /proc/self/fd, scripts, and the names that the program sees.
#include "conformance.h"

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>

extern char **environ;

// report is the output of the program after it was started from the file.
static int report(int argc, char **argv)
{
	char name[16], exe[256] = {0};
	CHECK(prctl(PR_GET_NAME, name) == 0);
	CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
	printf("file %s, exe %s\n", (char *)getauxval(AT_EXECFN), exe);
	// Newer kernels report another name for a file that execveat finds without a path.
	if (getenv("NAMED"))
		printf("name %s\n", name);
	for (int i = 2; i < argc; i++)
		printf("argument %s\n", argv[i]);
	return 0;
}

static int copy_of_self(unsigned flags)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("program", flags);
	struct stat st;
	CHECK(from >= 0 && fd >= 0 && fstat(from, &st) == 0);
	for (off_t done = 0; done < st.st_size;)
		CHECK(sendfile(fd, from, &done, st.st_size - done) > 0);
	close(from);
	CHECK(dup2(fd, 50) == 50 && close(fd) == 0);
	CHECK(fcntl(50, F_SETFD, flags & MFD_CLOEXEC ? FD_CLOEXEC : 0) == 0);
	return 50;
}

static void show_child(const char *what, int (*f)(int), int fd)
{
	printf("%s\n", what);
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		f(fd);
		printf("%s\n", errname(errno));
		exit(9);
	}
	printf("%s: %s\n", what, status_text(wait_for(pid)));
}

static char *arguments[] = {"program", "report", "one", "two", NULL};

static int by_fexecve(int fd) { return fexecve(fd, arguments, environ); }

static int by_empty_path(int fd) { return syscall(SYS_execveat, fd, "", arguments, environ, AT_EMPTY_PATH); }

static int without_flag(int fd) { return syscall(SYS_execveat, fd, "", arguments, environ, 0); }

static int by_proc(int fd)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	setenv("NAMED", "yes", 1);
	return execve(path, arguments, environ);
}

static int by_dev(int fd)
{
	char path[64];
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	setenv("NAMED", "yes", 1);
	return execve(path, arguments, environ);
}

// opened_again opens the file for writing a second time, by name.
static int opened_again(int fd)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK(open(path, O_RDWR) >= 0);
	return by_fexecve(fd);
}

static int working_folder(int fd)
{
	(void)fd;
	return syscall(SYS_execveat, AT_FDCWD, "", arguments, environ, AT_EMPTY_PATH);
}

static int below_a_folder(int fd)
{
	(void)fd;
	CHECK(mkdir("folder", 0755) == 0 || errno == EEXIST);
	CHECK(symlink("/proc/self/exe", "folder/program") == 0 || errno == EEXIST);
	CHECK(dup2(open("folder", O_PATH), 52) == 52);
	SHOW(syscall(SYS_execveat, 52, "program", arguments, environ, AT_SYMLINK_NOFOLLOW));
	return syscall(SYS_execveat, 52, "program", arguments, environ, 0);
}

static int with_name(int fd) { return syscall(SYS_execveat, fd, "name", arguments, environ, 0); }

static int without_right(int fd)
{
	CHECK(fchmod(fd, 0600) == 0);
	return by_fexecve(fd);
}

static void scripts(void)
{
	static const char text[] = "#!/bin/sh\necho script $# $1 ${0##*/}\n";
	for (int cloexec = 0; cloexec < 2; cloexec++) {
		int fd = memfd_create("script", 0);
		CHECK(write(fd, text, sizeof text - 1) == sizeof text - 1);
		CHECK(dup2(fd, 51) == 51 && close(fd) == 0);
		CHECK(fcntl(51, F_SETFD, cloexec ? FD_CLOEXEC : 0) == 0);
		show_child(cloexec ? "script, closed" : "script", by_fexecve, 51);
	}
}

// running writes to the file while it is executed.
static void running(void)
{
	int fd = copy_of_self(MFD_ALLOW_SEALING), ready[2], go[2];
	CHECK(pipe(ready) == 0 && pipe(go) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(dup2(ready[1], 60) == 60 && dup2(go[0], 61) == 61);
		execve("/proc/self/fd/50", (char *[]){"program", "wait", NULL}, environ);
		_exit(8);
	}
	char c;
	CHECK(read(ready[0], &c, 1) == 1);
	SHOW(open("/proc/self/fd/50", O_RDWR));
	int plain = open("/proc/self/fd/50", O_RDONLY | O_CLOEXEC);
	CHECK(plain >= 0);
	close(plain);
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	SHOW(pwrite(fd, "x", 1, st.st_size));
	SHOW(ftruncate(fd, st.st_size));
	SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(write(go[1], "", 1) == 1);
	printf("%s\n", status_text(wait_for(pid)));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "report") == 0)
		return report(argc, argv);
	if (argc > 1 && strcmp(argv[1], "wait") == 0) {
		char c;
		CHECK(write(60, "", 1) == 1 && read(61, &c, 1) == 1);
		return 4;
	}
	int fd = copy_of_self(0);
	show_child("fexecve", by_fexecve, fd);
	show_child("empty path", by_empty_path, fd);
	show_child("empty path without the flag", without_flag, fd);
	show_child("/proc", by_proc, fd);
	show_child("/dev/fd", by_dev, fd);
	show_child("open for writing", opened_again, fd);
	show_child("below a file", with_name, fd);
	show_child("the working folder", working_folder, fd);
	show_child("below a folder", below_a_folder, fd);
	fd = copy_of_self(MFD_CLOEXEC);
	show_child("closed on exec", by_fexecve, fd);
	show_child("/proc, closed on exec", by_proc, fd);
	show_child("without the right", without_right, fd);
	scripts();
	running();
	return 0;
}
