// Hard and symbolic links: counts, readlink, dangling and looping links, links as directories, unlink while open.
#include "conformance.h"

static long links(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? (long)st.st_nlink : -1;
}

int main(void)
{
	char buf[100];
	struct stat st;
	write_file("file", "contents");
	SHOW(link("file", "hard"));
	SHOW(link("file", "hard"));
	SHOW(links("file"));
	SHOW(link("missing", "x"));
	SHOW(link("file", "missing/x"));
	SHOW(unlink("file"));
	SHOW(links("hard"));
	CHECK(read_file("hard", buf, sizeof buf) == 8);
	printf("%s\n", buf);
	CHECK(mkdir("dir", 0755) == 0);
	SHOW(link("dir", "x"));

	SHOW(symlink("hard", "sym"));
	SHOW(symlink("hard", "sym"));
	SHOW(symlink("", "empty"));
	SHOW(symlink("dir", "symdir"));
	SHOW(symlink("../dir", "dir/up"));
	memset(buf, '#', sizeof buf);
	SHOW(readlink("sym", buf, sizeof buf));
	printf("%.6s\n", buf);
	SHOW(readlink("sym", buf, 2));
	SHOW(readlink("hard", buf, sizeof buf));
	SHOW(readlink("missing", buf, sizeof buf));
	SHOW(readlink("sym", buf, 0));
	CHECK(lstat("sym", &st) == 0);
	printf("size of the link %ld\n", (long)st.st_size);
	SHOW(link("sym", "symhard"));
	CHECK(lstat("symhard", &st) == 0);
	printf("a link to the link: %d, links %ld\n", S_ISLNK(st.st_mode), (long)st.st_nlink);
	write_file("symdir/inside", "x");
	SHOW(access("dir/inside", F_OK));
	SHOW(access("dir/up/up/up/inside", F_OK));
	SHOW(unlink("symdir/inside"));
	SHOW(unlink("symdir"));
	SHOW(access("dir", F_OK));
	// Writing through a link; creating through a dangling one.
	write_file("sym", "changed");
	CHECK(read_file("hard", buf, sizeof buf) == 7);
	printf("%s\n", buf);

	// Removed from the directory, but still open.
	int fd = open("hard", O_RDWR), again;
	CHECK(fd >= 0);
	SHOW(unlink("hard"));
	SHOW(access("sym", F_OK));
	SHOW(access("hard", F_OK));
	CHECK(fstat(fd, &st) == 0);
	printf("links %ld, size %ld\n", (long)st.st_nlink, (long)st.st_size);
	SHOW(pwrite(fd, "still", 5, 0));
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY);
	CHECK(again >= 0 && read(again, buf, 7) == 7);
	printf("%.7s\n", buf);
	ssize_t n = readlink(path, buf, sizeof buf);
	CHECK(n > 10);
	printf("%.*s\n", 10, buf + n - 10);
	// A new file of the same name is another file.
	write_file("hard", "new");
	CHECK(pread(fd, buf, 5, 0) == 5);
	printf("%.5s\n", buf);
	return 0;
}
