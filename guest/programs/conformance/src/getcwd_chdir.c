// chdir, fchdir and getcwd, per process and shared by threads; /proc/self/cwd; a directory renamed while current.
#include "conformance.h"

static char top[4096];

static void where(const char *what)
{
	char buf[4096], link[4096] = {0};
	CHECK(getcwd(buf, sizeof buf) != NULL);
	CHECK(readlink("/proc/self/cwd", link, sizeof link - 1) > 0);
	CHECK(strcmp(buf, link) == 0);
	CHECK(strncmp(buf, top, strlen(top)) == 0);
	printf("%s: .%s\n", what, buf + strlen(top));
}

static void *changes(void *arg)
{
	CHECK(chdir(arg) == 0);
	return NULL;
}

int main(void)
{
	CHECK(getcwd(top, sizeof top) != NULL);
	CHECK(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && symlink("a/b", "l") == 0);
	where("start");
	CHECK(chdir("l") == 0);
	where("through a link");
	CHECK(chdir("..") == 0);
	where("up");
	int fd = open("b", O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0 && fchdir(fd) == 0);
	where("by descriptor");
	CHECK(chdir(top) == 0);
	finish(start(changes, "a"));
	where("a thread changed it");
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(chdir("b") == 0);
		where("child");
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	where("parent");
	CHECK(rename("../a", "../renamed") == 0);
	where("renamed");
	CHECK(chdir(top) == 0);

	char small[4];
	SHOW(getcwd(small, sizeof small) == NULL ? -1 : 0);
	SHOW(getcwd(small, 0) == NULL ? -1 : 0);
	char *own = getcwd(NULL, 0);
	CHECK(own != NULL && strcmp(own, top) == 0);
	free(own);
	SHOW(chdir("missing"));
	write_file("file", "");
	SHOW(chdir("file"));
	SHOW(fchdir(open("file", O_RDONLY)));
	SHOW(fchdir(999));
	return 0;
}
