// Directory listing: all names once, types, rewind, seek and tell, many entries, raw getdents64, scandir, nftw.
#include "conformance.h"

#include <dirent.h>
#include <ftw.h>

static const char *type(unsigned char t)
{
	return t == DT_REG ? "file" : t == DT_DIR ? "dir" : t == DT_LNK ? "link" : t == DT_FIFO ? "fifo" : "other";
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int walked, depth;

static int walk(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)path;
	(void)st;
	(void)flag;
	walked++;
	if (f->level > depth)
		depth = f->level;
	return 0;
}

int main(void)
{
	CHECK(mkdir("d", 0755) == 0 && chdir("d") == 0);
	CHECK(mkdir("sub", 0755) == 0 && symlink("x", "link") == 0 && mkfifo("fifo", 0600) == 0);
	write_file("plain", "");
	struct dirent **list;
	int n = scandir(".", &list, NULL, by_name);
	CHECK(n == 6);
	for (int i = 0; i < n; i++) {
		struct stat st;
		CHECK(lstat(list[i]->d_name, &st) == 0);
		// The entry ".." of a mount point may have another file system's number.
		CHECK(list[i]->d_ino == st.st_ino || strcmp(list[i]->d_name, "..") == 0);
		printf("%s %s\n", list[i]->d_name, type(list[i]->d_type));
		free(list[i]);
	}
	free(list);

	// More than one getdents64 of the C library returns.
	enum { MANY = 250, LONG = 200 };
	for (int i = 0; i < MANY; i++) {
		char name[LONG + 10];
		snprintf(name, sizeof name, "sub/%04d", i);
		memset(name + 8, 'x', LONG);
		name[8 + LONG] = 0;
		write_file(name, "");
	}
	static char seen[MANY];
	int dots = 0, total = 0;
	DIR *d = opendir("sub");
	CHECK(d != NULL);
	for (int round = 0; round < 2; round++) {
		struct dirent *e;
		errno = 0;
		while ((e = readdir(d)) != NULL) {
			total++;
			if (e->d_name[0] == '.')
				dots++;
			else
				seen[atoi(e->d_name)]++;
		}
		CHECK(errno == 0);
		rewinddir(d);
	}
	for (int i = 0; i < MANY; i++)
		CHECK(seen[i] == 2);
	printf("entries %d, dots %d\n", total, dots);

	// seekdir to a position of telldir.
	for (int i = 0; i < 100; i++)
		CHECK(readdir(d) != NULL);
	long place = telldir(d);
	char name[256];
	snprintf(name, sizeof name, "%s", readdir(d)->d_name);
	for (int i = 0; i < 120; i++)
		CHECK(readdir(d) != NULL);
	seekdir(d, place);
	printf("same entry again: %d\n", strcmp(readdir(d)->d_name, name) == 0);
	CHECK(closedir(d) == 0);

	// Entries are removed while it is read: the rest is listed, nothing twice.
	d = opendir("sub");
	struct dirent *e;
	int removed = 0;
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.') {
			CHECK(unlinkat(dirfd(d), e->d_name, 0) == 0);
			removed++;
		}
	printf("removed %d\n", removed);
	CHECK(closedir(d) == 0);

	char buf[1024];
	int fd = open("sub", O_RDONLY | O_DIRECTORY);
	SHOW(syscall(SYS_getdents64, fd, buf, 5));
	long got = syscall(SYS_getdents64, fd, buf, sizeof buf);
	printf("raw: %ld\n", got);
	SHOW(syscall(SYS_getdents64, fd, buf, sizeof buf));
	SHOW(syscall(SYS_getdents64, 0x3fff, buf, sizeof buf));
	SHOW(syscall(SYS_getdents64, open("plain", O_RDONLY), buf, sizeof buf));
	SHOW(opendir("plain") == NULL ? -1 : 0);
	SHOW(opendir("missing") == NULL ? -1 : 0);
	CHECK(mkdir("sub/a", 0755) == 0 && mkdir("sub/a/b", 0755) == 0);
	write_file("sub/a/b/c", "");
	CHECK(nftw(".", walk, 10, FTW_PHYS) == 0);
	printf("walked %d, depth %d\n", walked, depth);
	return 0;
}
