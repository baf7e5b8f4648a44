// statfs and statvfs give plausible numbers; extended attributes are supported or refused as a whole, consistently.
#include "conformance.h"

#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

int main(void)
{
	struct statfs a, b;
	struct statvfs v;
	write_file("file", "x");
	int fd = open("file", O_RDWR);
	SHOW(statfs(".", &a));
	SHOW(fstatfs(fd, &b));
	SHOW(statvfs("file", &v));
	CHECK(a.f_type == b.f_type && a.f_bsize == b.f_bsize && a.f_namelen == b.f_namelen);
	CHECK(a.f_bsize > 0 && a.f_bavail <= a.f_blocks && a.f_bfree <= a.f_blocks && a.f_ffree <= a.f_files);
	CHECK(v.f_bsize == (unsigned long)a.f_bsize && v.f_namemax == (unsigned long)a.f_namelen);
	printf("name length %ld\n", (long)a.f_namelen);
	SHOW(pathconf(".", _PC_NAME_MAX));
	SHOW(pathconf(".", _PC_PATH_MAX));
	SHOW(fpathconf(fd, _PC_PIPE_BUF));
	SHOW(statfs("missing", &a));
	SHOW(fstatfs(999, &a));
	SHOW(statfs("/proc", &a));
	printf("proc: %d\n", a.f_type == 0x9fa0);

	// Either user attributes exist and work, or every call refuses them.
	char buf[100] = {0};
	if (setxattr("file", "user.one", "value", 5, 0) == 0) {
		CHECK(getxattr("file", "user.one", buf, sizeof buf) == 5 && memcmp(buf, "value", 5) == 0);
		CHECK(fgetxattr(fd, "user.one", NULL, 0) == 5);
		CHECK(getxattr("file", "user.one", buf, 2) == -1 && errno == ERANGE);
		CHECK(getxattr("file", "user.none", buf, sizeof buf) == -1 && errno == ENODATA);
		CHECK(setxattr("file", "user.one", "x", 1, XATTR_CREATE) == -1 && errno == EEXIST);
		CHECK(setxattr("file", "user.two", "x", 1, XATTR_REPLACE) == -1 && errno == ENODATA);
		CHECK(listxattr("file", buf, sizeof buf) >= 9);
		CHECK(removexattr("file", "user.one") == 0);
		CHECK(removexattr("file", "user.one") == -1 && errno == ENODATA);
	} else {
		CHECK(errno == EOPNOTSUPP);
		CHECK(getxattr("file", "user.one", buf, sizeof buf) == -1 && (errno == EOPNOTSUPP || errno == ENODATA));
		CHECK(removexattr("file", "user.one") == -1 && (errno == EOPNOTSUPP || errno == ENODATA));
	}
	SHOW(setxattr("missing", "user.one", "x", 1, 0));
	SHOW(getxattr("missing", "user.one", buf, sizeof buf));
	SHOW(setxattr("file", "nonsense", "x", 1, 0));
	SHOW(fgetxattr(999, "user.one", buf, sizeof buf));
	return 0;
}
