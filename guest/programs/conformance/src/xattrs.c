// Extended attributes: errors in the arguments are reported before those of the file system.
#include "conformance.h"

#include <sys/xattr.h>

// absent prints 1 if there is no such attribute, on file systems with and without them.
static void absent(const char *what, ssize_t r)
{
	printf("%s: %d\n", what, r == -1 && (errno == ENODATA || errno == EOPNOTSUPP));
}

int main(void)
{
	char buf[100], long_name[300] = "user.";
	memset(long_name + 5, 'x', 280);
	write_file("file", "text");
	CHECK(symlink("file", "link") == 0 && symlink("none", "dangling") == 0);
	int fd = open("file", O_RDWR);
	absent("getxattr", getxattr("file", "user.none", buf, sizeof buf));
	absent("lgetxattr", lgetxattr("link", "user.none", buf, sizeof buf) == -1 ? (errno = errno == EPERM ? ENODATA : errno, -1) : 0);
	absent("fgetxattr", fgetxattr(fd, "user.none", NULL, 0));
	absent("removexattr", removexattr("file", "user.none"));
	absent("fremovexattr", fremovexattr(fd, "user.none"));
	SHOW(getxattr("none", "user.none", buf, sizeof buf));
	SHOW(getxattr("dangling", "user.none", buf, sizeof buf));
	SHOW(getxattr("file", "nothing.none", buf, sizeof buf));
	SHOW(getxattr("file", "", buf, sizeof buf));
	SHOW(getxattr("file", long_name, buf, sizeof buf));
	SHOW(fgetxattr(-1, "user.none", buf, sizeof buf));
	SHOW(setxattr("file", "nothing.none", "x", 1, 0));
	SHOW(setxattr("file", "user.none", "x", 1, 8));
	SHOW(syscall(SYS_setxattr, "file", "user.none", buf, 1 << 20, 0));
	SHOW(lsetxattr("link", "nothing.none", "x", 1, 0));
	SHOW(fsetxattr(fd, "", "x", 1, 0));
	SHOW(removexattr("none", "user.none"));
	SHOW(lremovexattr("link", "nothing.none"));
	SHOW(fremovexattr(fd, "nothing.none"));
	SHOW(listxattr("file", NULL, 0) >= 0);
	SHOW(llistxattr("dangling", NULL, 0) >= 0);
	SHOW(listxattr("dangling", NULL, 0));
	SHOW(flistxattr(fd, NULL, 0) >= 0);
	return 0;
}
