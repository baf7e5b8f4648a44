// stat, lstat, fstat, fstatat and statx agree field by field on every kind of file.
#include "conformance.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static const char *kind(mode_t m)
{
	return S_ISREG(m)    ? "file"
	       : S_ISDIR(m)  ? "directory"
	       : S_ISLNK(m)  ? "link"
	       : S_ISFIFO(m) ? "fifo"
	       : S_ISSOCK(m) ? "socket"
	       : S_ISCHR(m)  ? "character device"
	       : S_ISBLK(m)  ? "block device"
			     : "?";
}

static bool same(const struct stat *a, const struct statx *x)
{
	return a->st_ino == x->stx_ino && a->st_mode == x->stx_mode && a->st_nlink == x->stx_nlink &&
	       a->st_uid == x->stx_uid && a->st_gid == x->stx_gid && a->st_size == (off_t)x->stx_size &&
	       a->st_dev == makedev(x->stx_dev_major, x->stx_dev_minor) &&
	       a->st_rdev == makedev(x->stx_rdev_major, x->stx_rdev_minor) &&
	       a->st_blksize == x->stx_blksize && a->st_blocks == (blkcnt_t)x->stx_blocks &&
	       a->st_mtim.tv_sec == x->stx_mtime.tv_sec && a->st_mtim.tv_nsec == x->stx_mtime.tv_nsec &&
	       a->st_ctim.tv_sec == x->stx_ctime.tv_sec && a->st_ctim.tv_nsec == x->stx_ctime.tv_nsec;
}

static void show(const char *path)
{
	struct stat st, at;
	struct statx x;
	CHECK(lstat(path, &st) == 0);
	CHECK(fstatat(AT_FDCWD, path, &at, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &x) == 0);
	CHECK((x.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
	CHECK(memcmp(&st, &at, sizeof st) == 0 && same(&st, &x));
	CHECK(st.st_blksize > 0 && st.st_ino > 0);
	printf("%s: %s %o links %ld size %ld\n", path, kind(st.st_mode), st.st_mode & 07777,
	       S_ISDIR(st.st_mode) ? 0 : (long)st.st_nlink, S_ISDIR(st.st_mode) ? 0 : (long)st.st_size);
}

int main(void)
{
	umask(022);
	write_file("file", "0123456789");
	CHECK(chmod("file", 0640) == 0);
	CHECK(mkdir("dir", 0751) == 0 && symlink("file", "link") == 0 && link("file", "hard") == 0);
	CHECK(mkfifo("fifo", 0604) == 0);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "socket"};
	CHECK(bind(s, (struct sockaddr *)&addr, sizeof addr) == 0);
	CHECK(chmod("socket", 0700) == 0);
	static const char *const all[] = {"file", "hard", "dir", "link", "fifo", "socket"};
	for (int i = 0; i < LEN(all); i++)
		show(all[i]);

	struct stat a, b;
	CHECK(stat("file", &a) == 0 && stat("link", &b) == 0);
	printf("through the link: %d\n", memcmp(&a, &b, sizeof a) == 0);
	CHECK(lstat("link", &b) == 0);
	printf("the link itself: another inode %d\n", a.st_ino != b.st_ino);
	CHECK(stat("hard", &b) == 0);
	printf("hard link: same inode %d\n", a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	printf("owner is me: %d %d\n", a.st_uid == geteuid(), b.st_gid == getegid());
	int fd = open("file", O_RDONLY);
	CHECK(fstat(fd, &b) == 0 && a.st_ino == b.st_ino && b.st_size == 10);

	CHECK(stat("/dev/null", &a) == 0);
	printf("/dev/null: %s %u,%u\n", kind(a.st_mode), major(a.st_rdev), minor(a.st_rdev));
	int ends[2];
	CHECK(pipe(ends) == 0 && fstat(ends[0], &a) == 0 && fstat(ends[1], &b) == 0);
	printf("pipe: %s, one inode %d\n", kind(a.st_mode), a.st_ino == b.st_ino);
	CHECK(fstat(s, &a) == 0);
	printf("socket: %s\n", kind(a.st_mode));
	struct statx x;
	SHOW(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &x));
	printf("size %lld\n", (long long)x.stx_size);
	SHOW(statx(fd, "", 0, STATX_SIZE, &x));
	SHOW(statx(AT_FDCWD, "missing", 0, STATX_SIZE, &x));
	SHOW(statx(AT_FDCWD, "file", 0x40000000, STATX_SIZE, &x));
	SHOW(statx(AT_FDCWD, "file", 0, 0x80000000, &x));
	SHOW(fstat(999, &a));

	// Distinct files have distinct inode numbers.
	ino_t ino[50];
	for (int i = 0; i < LEN(ino); i++) {
		char name[20];
		snprintf(name, sizeof name, "n%d", i);
		write_file(name, "");
		CHECK(stat(name, &a) == 0);
		ino[i] = a.st_ino;
		for (int j = 0; j < i; j++)
			CHECK(ino[i] != ino[j]);
	}
	return 0;
}
