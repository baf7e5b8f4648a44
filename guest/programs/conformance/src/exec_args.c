// execve with arguments and environment of all shapes, the exec family, fexecve and execveat, E2BIG.
#include "conformance.h"

extern char **environ;

static int child(int argc, char **argv)
{
	if (strcmp(argv[1], "sum") == 0) {
		unsigned long n = 0, bytes = 0;
		for (int i = 2; i < argc; i++)
			n++, bytes += strlen(argv[i]) + i % 7;
		for (char **e = environ; *e; e++)
			n++, bytes += strlen(*e);
		printf("strings %lu, bytes %lu\n", n, bytes);
		return 0;
	}
	printf("argc %d:", argc);
	for (int i = 0; i < argc; i++)
		printf(" [%s]", argv[i]);
	CHECK(argv[argc] == NULL);
	printf(" env:");
	for (char **e = environ; *e; e++)
		printf(" [%s]", *e);
	printf("\n");
	return 0;
}

static void report(const char *what, pid_t pid)
{
	int status = wait_for(pid);
	if (status != 0)
		printf("%s: %s\n", what, status_text(status));
}

#define RUN(call)                                                  \
	do {                                                       \
		pid_t pid_ = fork();                               \
		CHECK(pid_ >= 0);                                  \
		if (pid_ == 0) {                                   \
			(void)!(call);                             \
			printf("%s: %s\n", #call, errname(errno)); \
			_exit(0);                                  \
		}                                                  \
		report(#call, pid_);                                \
	} while (0)

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argc, argv);
	char self[4096] = {0}, *none[] = {NULL}, *env[] = {"A=1", "EMPTY=", "=odd", "no equals sign", NULL};
	char *args[] = {"name", "one", "", "two words", "\xc3\xa4\x01", NULL};
	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	RUN(execve(self, args, env));
	RUN(execve(self, args, none));
	RUN(execle(self, "execle", "x", NULL, env));
	CHECK(clearenv() == 0 && setenv("KEPT", "yes", 1) == 0);
	RUN(execl(self, "execl", "x", NULL));
	RUN(execv(self, args));
	// By name along PATH.
	char *slash = strrchr(self, '/'), *base = slash + 1;
	char dir[4096];
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - self), self);
	CHECK(symlink(self, "by-name") == 0);
	CHECK(setenv("PATH", "/nowhere:.", 1) == 0);
	RUN(execlp("by-name", "execlp", "x", NULL));
	RUN(execvp("missing-name", args));
	CHECK(setenv("PATH", dir, 1) == 0);
	RUN(execvpe(base, args, none));
	int fd = open(self, O_RDONLY);
	CHECK(fd >= 0);
	RUN(fexecve(fd, args, none));
	int d = open(dir, O_RDONLY | O_DIRECTORY);
	RUN(execveat(d, base, args, none, 0));
	RUN(execveat(fd, "", args, env, AT_EMPTY_PATH));
	RUN(execveat(AT_FDCWD, "by-name", args, none, AT_SYMLINK_NOFOLLOW));

	// Many strings, long strings, and too many of them.
	static char *many[20003];
	static char longest[131072];
	many[0] = "name";
	many[1] = "sum";
	for (int i = 2; i < 20000; i++)
		many[i] = "argument";
	RUN(execve(self, many, env));
	memset(longest, 'l', sizeof longest - 1);
	many[2] = longest;
	many[3] = NULL;
	RUN(execve(self, many, env));
	longest[sizeof longest - 2] = 0;
	RUN(execve(self, many, (char *[]){longest, longest, NULL}));
	for (int i = 2; i < 100; i++)
		many[i] = longest;
	many[100] = NULL;
	RUN(execve(self, many, none));
	return 0;
}
