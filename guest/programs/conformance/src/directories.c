// mkdir, rmdir and unlink of directories that exist, are not empty, are in use, are the current one, or are named by a dot.
#include "conformance.h"

int main(void)
{
	struct stat st;
	SHOW(mkdir("a", 0755));
	SHOW(mkdir("a", 0755));
	SHOW(mkdir("a/b", 0755));
	SHOW(mkdir("a/b/c/", 0755));
	SHOW(mkdir(".", 0755));
	SHOW(mkdir("..", 0755));
	SHOW(mkdir("/", 0755));
	SHOW(rmdir("a"));
	SHOW(rmdir("a/b/."));
	SHOW(rmdir("a/b/.."));
	SHOW(rmdir("missing"));
	SHOW(rmdir(""));
	SHOW(rmdir("a/b/c///"));
	write_file("file", "");
	SHOW(rmdir("file"));
	SHOW(mkdir("file", 0755));
	SHOW(mkdir("file/x", 0755));
	SHOW(unlink("a"));
	SHOW(unlink("."));
	SHOW(remove("a/b"));
	SHOW(remove("file"));
	CHECK(symlink("a", "link") == 0);
	SHOW(rmdir("link"));
	SHOW(rmdir("link/"));
	SHOW(unlink("link"));

	// The current directory can be removed.
	CHECK(mkdir("cwd", 0755) == 0 && chdir("cwd") == 0);
	SHOW(rmdir("../cwd"));
	char buf[4096];
	SHOW(getcwd(buf, sizeof buf) == NULL ? -1 : 0);
	SHOW(open("x", O_WRONLY | O_CREAT, 0600));
	SHOW(mkdir("x", 0755));
	SHOW(stat(".", &st));
	SHOW(stat("x", &st));
	SHOW(chdir(".."));
	SHOW(access("a", F_OK));

	// A tree deeper than the longest path name.
	int levels = 0;
	memset(buf, 'd', 200);
	buf[200] = 0;
	while (levels < 30) {
		CHECK(mkdir(buf, 0755) == 0 && chdir(buf) == 0);
		levels++;
	}
	char small[4096];
	SHOW(getcwd(small, sizeof small) == NULL ? -1 : 0);
	write_file("deep", "down");
	CHECK(unlink("deep") == 0);
	while (levels-- > 0)
		CHECK(chdir("..") == 0 && rmdir(buf) == 0);
	SHOW(access("a", F_OK));
	return 0;
}
