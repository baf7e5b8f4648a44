// Errors of path names: ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, trailing slashes, dots, empty names, too many files.
#include "conformance.h"

static long shut(int fd)
{
	return fd < 0 ? -1 : close(fd);
}

int main(void)
{
	struct stat st;
	char name[5000];
	write_file("file", "x");
	CHECK(mkdir("dir", 0755) == 0 && mkdir("dir/sub", 0755) == 0);
	CHECK(symlink("loop2", "loop1") == 0 && symlink("loop1", "loop2") == 0 && symlink("self/x", "self") == 0);
	CHECK(symlink("dir/", "slash") == 0 && symlink("file", "tofile") == 0);

	SHOW(stat("", &st));
	SHOW(stat("missing", &st));
	SHOW(stat("missing/x", &st));
	SHOW(stat("file/x", &st));
	SHOW(stat("file/", &st));
	SHOW(stat("file/.", &st));
	SHOW(stat("file/..", &st));
	SHOW(stat("tofile/", &st));
	SHOW(stat("dir/", &st));
	SHOW(stat("dir//sub///", &st));
	SHOW(stat("dir/./sub/../../file", &st));
	SHOW(stat("dir/missing/..", &st));
	SHOW(stat("slash/sub", &st));
	SHOW(stat("/../../..", &st));
	SHOW(stat("//", &st));
	SHOW(stat("loop1", &st));
	SHOW(lstat("loop1", &st));
	SHOW(stat("loop1/x", &st));
	SHOW(stat("self", &st));
	SHOW(shut(open("loop1", O_RDONLY | O_CREAT, 0600)));
	SHOW(shut(open("file/", O_RDONLY)));
	SHOW(shut(open("missing/", O_RDONLY | O_CREAT, 0600)));
	SHOW(shut(open("", O_RDONLY | O_CREAT, 0600)));
	SHOW(mkdir("", 0755));
	SHOW(mkdir("new/", 0755));
	SHOW(mkdir("a/b", 0755));
	SHOW(unlink("dir/.."));
	SHOW(unlink("file/"));
	SHOW(unlink(""));

	memset(name, 'n', sizeof name);
	name[255] = 0;
	SHOW(shut(open(name, O_RDONLY | O_CREAT, 0600)));
	SHOW(stat(name, &st));
	name[255] = 'n';
	name[256] = 0;
	SHOW(shut(open(name, O_RDONLY | O_CREAT, 0600)));
	SHOW(stat(name, &st));
	// 4095 bytes are a path, 4096 are not.
	for (int i = 0; i < 4096; i++)
		name[i] = i % 2 ? '/' : '.';
	name[4095] = 0;
	SHOW(stat(name, &st));
	name[4095] = '/';
	name[4096] = 0;
	SHOW(stat(name, &st));

	// Forty links in a row are followed, forty-one are not.
	CHECK(symlink("file", "chain0") == 0);
	for (int i = 1; i < 42; i++) {
		char from[20], to[20];
		snprintf(from, sizeof from, "chain%d", i);
		snprintf(to, sizeof to, "chain%d", i - 1);
		CHECK(symlink(to, from) == 0);
	}
	SHOW(stat("chain39", &st));
	SHOW(stat("chain40", &st));

	// No free descriptors. Some may have been open when the program started.
	for (int i = 3; i < 20; i++)
		close(i);
	struct rlimit r;
	CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0);
	r.rlim_cur = 20;
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
	int n = 0, fd;
	while ((fd = open("file", O_RDONLY)) >= 0) {
		CHECK(fd == n + 3);
		n++;
	}
	printf("after %d files: %s\n", n, errname(errno));
	SHOW(dup(0));
	SHOW(dup2(0, 20));
	SHOW(pipe((int[2]){0, 0}));
	SHOW(fcntl(0, F_DUPFD, 19));
	SHOW(fcntl(0, F_DUPFD, 20));
	return 0;
}
