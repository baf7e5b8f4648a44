// open with each flag: CREAT, EXCL, TRUNC, APPEND, DIRECTORY, NOFOLLOW, CLOEXEC, PATH, TMPFILE, and the access modes.
#include "conformance.h"

static char buf[100];

static void contents(const char *path)
{
	CHECK(read_file(path, buf, sizeof buf) >= 0);
	printf("%s: \"%s\"\n", path, buf);
}

static int hold(int fd)
{
	CHECK(fd >= 0);
	return fd;
}

static long shut(int fd)
{
	return fd < 0 ? -1 : close(fd);
}

int main(void)
{
	SHOW(shut(open("new", O_RDWR)));
	SHOW(shut(open("new", O_RDWR | O_CREAT | O_EXCL, 0640)));
	SHOW(shut(open("new", O_RDWR | O_CREAT | O_EXCL, 0640)));
	SHOW(shut(open("new", O_RDWR | O_CREAT, 0600)));
	struct stat st;
	CHECK(stat("new", &st) == 0);
	printf("mode %o, size %ld\n", st.st_mode, (long)st.st_size);

	write_file("new", "0123456789");
	int fd = hold(open("new", O_WRONLY));
	SHOW(write(fd, "ab", 2));
	SHOW(read(fd, buf, 2));
	contents("new");
	CHECK(close(fd) == 0);
	fd = hold(open("new", O_RDONLY));
	SHOW(write(fd, "x", 1));
	SHOW(ftruncate(fd, 0));
	CHECK(close(fd) == 0);
	fd = hold(open("new", O_WRONLY | O_APPEND));
	SHOW(write(fd, "cd", 2));
	SHOW(lseek(fd, 0, SEEK_SET));
	SHOW(write(fd, "ef", 2));
	SHOW(lseek(fd, 0, SEEK_CUR));
	CHECK(close(fd) == 0);
	contents("new");
	CHECK(close(hold(open("new", O_WRONLY | O_TRUNC))) == 0);
	contents("new");

	CHECK(mkdir("dir", 0755) == 0 && symlink("new", "link") == 0 && symlink("dir", "dirlink") == 0);
	CHECK(symlink("nowhere", "dangling") == 0);
	SHOW(shut(open("dir", O_RDONLY)));
	SHOW(shut(open("dir", O_WRONLY)));
	SHOW(shut(open("dir", O_RDWR)));
	SHOW(shut(open("dir", O_RDONLY | O_CREAT, 0600)));
	SHOW(shut(open("dir", O_RDONLY | O_DIRECTORY)));
	SHOW(shut(open("new", O_RDONLY | O_DIRECTORY)));
	SHOW(shut(open("link", O_RDONLY | O_DIRECTORY)));
	SHOW(shut(open("dirlink", O_RDONLY | O_DIRECTORY)));
	SHOW(shut(open("dirlink", O_RDONLY | O_DIRECTORY | O_NOFOLLOW)));
	SHOW(shut(open("link", O_RDONLY | O_NOFOLLOW)));
	SHOW(shut(open("new", O_RDONLY | O_NOFOLLOW)));
	SHOW(shut(open("dangling", O_RDONLY)));
	SHOW(shut(open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0600)));
	SHOW(shut(open("dangling", O_WRONLY | O_CREAT, 0600)));
	SHOW(access("nowhere", F_OK));

	fd = hold(open("new", O_RDONLY | O_CLOEXEC));
	SHOW(fcntl(fd, F_GETFD));
	CHECK(close(fd) == 0);
	fd = hold(open("link", O_PATH | O_NOFOLLOW));
	SHOW(read(fd, buf, 1));
	SHOW(fcntl(fd, F_GETFL) & O_PATH ? 1 : 0);
	CHECK(fstat(fd, &st) == 0);
	printf("O_PATH of the link itself: %d\n", S_ISLNK(st.st_mode));
	memset(buf, 0, sizeof buf);
	SHOW(readlinkat(fd, "", buf, sizeof buf));
	printf("it points to %s\n", buf);
	CHECK(close(fd) == 0);
	fd = hold(open("dir", O_PATH));
	SHOW(shut(openat(fd, "inside", O_WRONLY | O_CREAT, 0600)));
	SHOW(fchdir(fd));
	SHOW(access("inside", F_OK));
	CHECK(chdir("..") == 0 && close(fd) == 0);

	// An unnamed file: gone when closed, unless the file system has none.
	fd = open(".", O_TMPFILE | O_RDWR, 0600);
	if (fd >= 0) {
		CHECK(write(fd, "temporary", 9) == 9 && pread(fd, buf, 9, 0) == 9);
		CHECK(fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 9);
		CHECK(close(fd) == 0);
	} else {
		CHECK(errno == EOPNOTSUPP || errno == EISDIR);
	}
	SHOW(shut(open(".", O_TMPFILE | O_RDONLY, 0600)));
	return 0;
}
