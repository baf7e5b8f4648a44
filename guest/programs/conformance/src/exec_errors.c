// exec of files that are no programs: missing, directory, text, empty, damaged ELF; scripts with interpreters of all kinds.
#include "conformance.h"

static char self[4096];

static int child(int argc, char **argv)
{
	printf("  ran as");
	for (int i = 1; i < argc; i++)
		printf(" [%s]", argv[i]);
	printf("\n");
	return 5;
}

static void file(const char *name, const void *text, size_t n)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
}

static void try(const char *what, const char *path)
{
	char *args[] = {"zero", "one", NULL}, *env[] = {NULL};
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execve(path, args, env);
		printf("%s: %s\n", what, errname(errno));
		_exit(0);
	}
	int status = wait_for(pid);
	if (status != 0)
		printf("%s: %s\n", what, status_text(status));
}

static void script(const char *what, const char *line)
{
	file("script", line, strlen(line));
	try(what, "./script");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argc, argv);
	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	CHECK(symlink(self, "interp") == 0 && symlink("loop", "loop") == 0);
	try("missing", "./missing");
	try("empty name", "");
	try("directory", ".");
	try("through a file", "script/x");
	try("loop", "./loop");
	file("empty", "", 0);
	try("empty", "./empty");
	file("text", "just text\n", 10);
	try("text", "./text");
	file("short", "\x7f" "ELF", 4);
	try("four bytes of ELF", "./short");
	char head[64];
	int fd = open(self, O_RDONLY);
	CHECK(fd >= 0 && read(fd, head, sizeof head) == sizeof head);
	file("header", head, sizeof head);
	try("header alone", "./header");
	head[18] = 40; // ARM
	file("arm", head, sizeof head);
	try("for another processor", "./arm");
	CHECK(mkfifo("fifo", 0755) == 0);
	try("fifo", "./fifo");
	file("plain", "#!./interp\n", 11);
	CHECK(chmod("plain", 0644) == 0);
	try("not executable", "./plain");

	script("script", "#!./interp\nrest\n");
	script("spaces and an argument", "#!  ./interp   -a  b  \nrest\n");
	script("no newline", "#!./interp");
	script("interpreter missing", "#!./no-such\n");
	script("no interpreter", "#!\n");
	script("blanks only", "#!   \n");
	script("interpreter is a directory", "#!.\n");
	script("interpreter is text", "#!./text\n");
	file("inner", "#!./interp inner-arg\n", 21);
	script("script of a script", "#!./inner outer-arg\n");
	script("script of itself", "#!./script\n");
	char longline[400];
	memset(longline, ' ', sizeof longline);
	memcpy(longline, "#!./interp ", 11);
	memset(longline + 11, 'a', 300);
	strcpy(longline + 311, "\n");
	file("script", longline, strlen(longline));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(freopen("out", "w", stdout) != NULL);
		char *args[] = {"zero", NULL}, *env[] = {NULL};
		execve("./script", args, env);
		_exit(1);
	}
	// The line is cut off, the program runs.
	printf("long line: %s\n", status_text(wait_for(pid)));
	return 0;
}
