// clone directly: the effects of CLONE_VM, FILES, FS, SIGHAND, PARENT and VFORK, exit signals, refused combinations.
#include "conformance.h"

#include <sys/prctl.h>

#ifndef __WCLONE
#define __WCLONE 0x80000000
#endif

static char *stack;
static int variable;
static volatile sig_atomic_t got;

static void handler(int sig)
{
	got = sig;
}

static int change(void *arg)
{
	(void)arg;
	variable = 1;
	close(10);
	umask(077);
	chdir("/");
	signal(SIGUSR1, SIG_IGN);
	return 3;
}

static long make(int (*f)(void *), int flags)
{
	return clone(f, stack + 65536, flags, NULL);
}

static void try(const char *what, int flags)
{
	char cwd[4096];
	variable = 0;
	CHECK(dup2(1, 10) == 10 && chdir("..") == 0 && chdir("home") == 0);
	umask(022);
	signal(SIGUSR1, SIG_DFL);
	int pid = make(change, flags | SIGCHLD);
	CHECK(pid > 0);
	CHECK(wait_for(pid) == 3 << 8);
	CHECK(getcwd(cwd, sizeof cwd) != NULL);
	struct sigaction sa;
	CHECK(sigaction(SIGUSR1, NULL, &sa) == 0);
	printf("%s: memory %d, files %d, folder %d, umask %d, handlers %d\n", what, variable, fcntl(10, F_GETFD) == -1,
	       strcmp(cwd, "/") == 0, umask(022) == 077, sa.sa_handler == SIG_IGN);
	CHECK(fchdir(11) == 0);
}

static int leave(void *arg)
{
	(void)arg;
	return 9;
}

static int parent_is(void *arg)
{
	(void)arg;
	return getppid() == variable ? 4 : 5;
}

static int slow(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++)
		sched_yield();
	variable = 77;
	return 0;
}

int main(void)
{
	stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED && mkdir("home", 0755) == 0 && chdir("home") == 0);
	CHECK(dup2(open(".", O_RDONLY | O_DIRECTORY), 11) == 11);
	try("nothing", 0);
	try("VM", CLONE_VM);
	try("FILES", CLONE_FILES);
	try("FS", CLONE_FS);
	try("VM, SIGHAND", CLONE_VM | CLONE_SIGHAND);
	try("all", CLONE_VM | CLONE_SIGHAND | CLONE_FILES | CLONE_FS);

	SHOW(make(leave, CLONE_SIGHAND | SIGCHLD));
	SHOW(make(leave, CLONE_THREAD | CLONE_VM));
	SHOW(make(leave, CLONE_THREAD | CLONE_SIGHAND));
	SHOW(make(leave, CLONE_FS | CLONE_NEWNS));

	// With another exit signal, or 0, only __WCLONE or __WALL finds the child.
	on_signal(SIGUSR2, handler, SA_RESTART);
	int status, pid = make(leave, SIGUSR2);
	CHECK(pid > 0);
	while (got != SIGUSR2)
		nap();
	SHOW(waitpid(pid, &status, 0));
	CHECK(waitpid(pid, &status, __WALL) == pid);
	printf("exit signal USR2: %s\n", status_text(status));
	pid = make(leave, 0);
	SHOW(waitpid(pid, &status, 0));
	CHECK(waitpid(pid, &status, __WCLONE) == pid);
	printf("no exit signal: %s\n", status_text(status));

	pid = make(slow, CLONE_VM | CLONE_VFORK | SIGCHLD);
	printf("VFORK: child was through %d\n", variable == 77);
	CHECK(wait_for(pid) == 0);

	// With CLONE_PARENT the new process is a sibling: a child of our child is our child.
	variable = getpid();
	int middle = fork();
	CHECK(middle >= 0);
	if (middle == 0) {
		pid = make(parent_is, CLONE_PARENT | SIGCHLD);
		CHECK(pid > 0);
		_exit(waitpid(pid, &status, 0) == -1 && errno == ECHILD ? 0 : 1);
	}
	printf("middle: %s\n", status_text(wait_for(middle)));
	CHECK(wait(&status) > 0);
	printf("brother: %s\n", status_text(status));

	// CLONE_PARENT_SETTID for a new process.
	int ptid = 0;
	pid = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, NULL, &ptid, NULL, 0);
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(6);
	printf("parent tid set: %d\n", ptid == pid);
	printf("%s\n", status_text(wait_for(pid)));
	return 0;
}
