// Permission bits: umask, chmod, fchmod, fchmodat, creation modes; access and faccessat; chown to the same owner.
#include "conformance.h"

static void mode(const char *path)
{
	struct stat st;
	CHECK(lstat(path, &st) == 0);
	printf("%s %o\n", path, st.st_mode & 07777);
}

int main(void)
{
	umask(0);
	printf("umask %o\n", umask(027));
	CHECK(close(open("a", O_CREAT | O_WRONLY, 0666)) == 0);
	CHECK(mkdir("d", 0777) == 0 && mkfifo("f", 0666) == 0);
	mode("a");
	mode("d");
	mode("f");
	printf("umask %o\n", umask(0));
	CHECK(close(open("b", O_CREAT | O_WRONLY, 0777)) == 0);
	mode("b");
	printf("umask %o\n", umask(07777));
	printf("only permission bits count: %o\n", umask(022));

	SHOW(chmod("a", 0600));
	mode("a");
	SHOW(chmod("a", 01755));
	mode("a");
	int fd = open("a", O_RDONLY);
	SHOW(fchmod(fd, 0444));
	mode("a");
	SHOW(fchmodat(AT_FDCWD, "a", 0644, 0));
	mode("a");
	CHECK(symlink("a", "l") == 0);
	SHOW(chmod("l", 0400));
	mode("a");
	mode("l");
	SHOW(chmod("missing", 0600));
	SHOW(chmod("a/x", 0600));
	SHOW(fchmod(999, 0600));

	// No user, not even root, executes a file without an execute bit.
	CHECK(chmod("a", 0644) == 0);
	SHOW(access("a", F_OK));
	SHOW(access("a", R_OK | W_OK));
	SHOW(access("a", X_OK));
	CHECK(chmod("a", 0755) == 0);
	SHOW(access("a", R_OK | W_OK | X_OK));
	SHOW(access("d", X_OK));
	SHOW(access("missing", F_OK));
	SHOW(access("a/x", F_OK));
	SHOW(access("a", 077));
	SHOW(faccessat(AT_FDCWD, "a", X_OK, AT_EACCESS));
	SHOW(faccessat(AT_FDCWD, "l", F_OK, AT_SYMLINK_NOFOLLOW));
	SHOW(euidaccess("a", R_OK));
	// execve of a file without an execute bit fails.
	CHECK(chmod("a", 0644) == 0);
	char *argv[] = {"a", NULL};
	SHOW(execv("./a", argv));
	SHOW(execv("./d", argv));

	SHOW(chown("a", -1, -1));
	SHOW(chown("a", geteuid(), getegid()));
	SHOW(lchown("l", geteuid(), -1));
	SHOW(fchown(fd, -1, getegid()));
	SHOW(chown("missing", -1, -1));
	struct stat st;
	CHECK(stat("a", &st) == 0 && st.st_uid == geteuid() && st.st_gid == getegid());
	return 0;
}
