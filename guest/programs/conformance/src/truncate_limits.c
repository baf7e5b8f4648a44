// truncate and ftruncate: growing, shrinking, refused files; RLIMIT_FSIZE with SIGXFSZ and EFBIG.
#include "conformance.h"

static volatile int xfsz;

static void handler(int sig)
{
	(void)sig;
	xfsz++;
}

static void size(int fd)
{
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("size %ld\n", (long)st.st_size);
}

int main(void)
{
	write_file("file", "0123456789");
	int fd = open("file", O_RDWR);
	char buf[20];
	SHOW(ftruncate(fd, 4));
	SHOW(ftruncate(fd, 8));
	CHECK(pread(fd, buf, 20, 0) == 8);
	printf("%.4s %d %d\n", buf, buf[4], buf[7]);
	SHOW(truncate("file", 100000));
	size(fd);
	// The position is left alone and may lie beyond the end.
	SHOW(lseek(fd, 50, SEEK_SET));
	SHOW(ftruncate(fd, 10));
	SHOW(read(fd, buf, 5));
	SHOW(write(fd, "x", 1));
	size(fd);
	SHOW(ftruncate(fd, -1));
	SHOW(truncate("file", -1));
	SHOW(truncate("missing", 0));
	SHOW(truncate(".", 0));
	SHOW(truncate("file/x", 0));
	int ro = open("file", O_RDONLY), ends[2];
	CHECK(pipe(ends) == 0);
	SHOW(ftruncate(ro, 5));
	SHOW(ftruncate(ends[1], 5));
	SHOW(ftruncate(999, 5));

	on_signal(SIGXFSZ, handler, 0);
	struct rlimit r;
	CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
	r.rlim_cur = 100;
	CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
	SHOW(pwrite(fd, "0123456789", 10, 95));
	printf("signals %d\n", xfsz);
	SHOW(pwrite(fd, "0123456789", 10, 100));
	printf("signals %d\n", xfsz);
	int ap = open("file", O_WRONLY | O_APPEND);
	SHOW(write(ap, "0123456789", 10));
	printf("signals %d\n", xfsz);
	SHOW(ftruncate(fd, 101));
	printf("signals %d\n", xfsz);
	SHOW(ftruncate(fd, 100));
	size(fd);
	return 0;
}
