// The *at calls: relative to a directory descriptor, AT_FDCWD, absolute paths, AT_EMPTY_PATH, refused descriptors.
#include "conformance.h"

static long shut(int fd)
{
	return fd < 0 ? -1 : close(fd);
}

int main(void)
{
	struct stat st;
	char buf[100] = {0}, cwd[4096];
	CHECK(mkdir("dir", 0755) == 0);
	int d = open("dir", O_RDONLY | O_DIRECTORY), here = open(".", O_RDONLY | O_DIRECTORY);
	CHECK(d >= 0 && here >= 0);
	int f = openat(d, "file", O_RDWR | O_CREAT, 0644);
	CHECK(f >= 0 && write(f, "hello", 5) == 5);

	SHOW(faccessat(d, "file", F_OK, 0));
	SHOW(faccessat(AT_FDCWD, "dir/file", F_OK, 0));
	SHOW(faccessat(AT_FDCWD, "file", F_OK, 0));
	SHOW(mkdirat(d, "sub", 0755));
	SHOW(mkdirat(d, "sub", 0755));
	SHOW(symlinkat("file", d, "link"));
	SHOW(readlinkat(d, "link", buf, sizeof buf));
	printf("%s\n", buf);
	SHOW(linkat(d, "file", here, "hard", 0));
	SHOW(linkat(d, "link", here, "hardlink", 0));
	CHECK(fstatat(here, "hardlink", &st, AT_SYMLINK_NOFOLLOW) == 0);
	printf("link to the link: %d\n", S_ISLNK(st.st_mode));
	SHOW(linkat(d, "link", here, "followed", AT_SYMLINK_FOLLOW));
	CHECK(lstat("followed", &st) == 0);
	printf("link to the file: %d, links %ld\n", S_ISREG(st.st_mode), (long)st.st_nlink);
	SHOW(linkat(d, "file", here, "x", 77));
	SHOW(renameat(d, "sub", here, "moved"));
	SHOW(fstatat(d, "sub", &st, 0));
	SHOW(fstatat(here, "moved", &st, 0));
	SHOW(fstatat(d, "link", &st, 77));
	SHOW(fstatat(f, "", &st, AT_EMPTY_PATH));
	printf("size %ld\n", (long)st.st_size);
	SHOW(fstatat(f, "", &st, 0));
	SHOW(fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH));
	printf("directory %d\n", S_ISDIR(st.st_mode));
	SHOW(fchmodat(d, "file", 0600, 0));
	SHOW(fchownat(d, "file", -1, -1, AT_SYMLINK_NOFOLLOW));
	SHOW(mknodat(d, "fifo", S_IFIFO | 0600, 0));
	SHOW(unlinkat(d, "fifo", 0));
	SHOW(unlinkat(here, "moved", 0));
	SHOW(unlinkat(here, "moved", AT_REMOVEDIR));
	SHOW(unlinkat(d, "file", AT_REMOVEDIR));
	SHOW(unlinkat(d, "file", 77));

	SHOW(shut(openat(999, "file", O_RDONLY)));
	SHOW(shut(openat(f, "file", O_RDONLY)));
	SHOW(shut(openat(-1, "file", O_RDONLY)));
	// An absolute path needs no descriptor.
	CHECK(getcwd(cwd, sizeof cwd - 20) != NULL);
	strcat(cwd, "/dir/file");
	SHOW(shut(openat(999, cwd, O_RDONLY)));
	SHOW(faccessat(999, cwd, R_OK, 0));

	// The descriptor follows the directory when it is renamed, and survives it.
	CHECK(rename("dir", "elsewhere") == 0);
	SHOW(shut(openat(d, "file", O_RDONLY)));
	SHOW(unlinkat(d, "file", 0));
	SHOW(unlinkat(d, "link", 0));
	CHECK(rmdir("elsewhere") == 0);
	SHOW(shut(openat(d, "file", O_RDONLY)));
	SHOW(shut(openat(d, "file", O_RDWR | O_CREAT, 0600)));
	SHOW(mkdirat(d, "sub", 0755));
	SHOW(shut(openat(d, ".", O_RDONLY)));
	return 0;
}
