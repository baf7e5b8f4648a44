// Status flags: which of them open sets, F_GETFL shows and F_SETFL can change, on files and pipes; F_GETOWN.
#include "conformance.h"

static void flags(const char *what, int fd)
{
	int f = fcntl(fd, F_GETFL);
	CHECK(f >= 0);
	printf("%s:%s%s%s%s%s%s%s\n", what,
	       (f & O_ACCMODE) == O_RDONLY   ? " rdonly"
	       : (f & O_ACCMODE) == O_WRONLY ? " wronly"
					     : " rdwr",
	       f & O_APPEND ? " append" : "", f & O_NONBLOCK ? " nonblock" : "", f & O_CREAT ? " creat" : "",
	       f & O_TRUNC ? " trunc" : "", (f & O_SYNC) == O_SYNC ? " sync" : f & O_DSYNC ? " dsync" : "",
	       f & O_CLOEXEC ? " cloexec" : "");
}

int main(void)
{
	int fd = open("file", O_RDWR | O_CREAT | O_TRUNC | O_EXCL | O_CLOEXEC, 0600);
	flags("created", fd);
	SHOW(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
	flags("append and nonblock", fd);
	SHOW(fcntl(fd, F_SETFL, O_WRONLY | O_SYNC));
	flags("access mode and sync stay", fd);
	flags("opened sync", open("file", O_WRONLY | O_SYNC | O_APPEND));
	flags("opened dsync", open("file", O_RDONLY | O_DSYNC | O_NONBLOCK));
	int ends[2];
	char c;
	CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
	flags("read end", ends[0]);
	flags("write end", ends[1]);
	SHOW(fcntl(ends[0], F_GETFD));
	SHOW(read(ends[0], &c, 1));
	SHOW(fcntl(ends[0], F_SETFL, 0));
	flags("blocking again", ends[0]);
	flags("write end as it was", ends[1]);
	SHOW(fcntl(ends[0], F_GETOWN));
	SHOW(fcntl(ends[0], F_GETSIG));
	SHOW(fcntl(fd, F_SETFD, 0));
	SHOW(fcntl(fd, F_GETFD));
	SHOW(fcntl(999, F_GETFL));
	SHOW(fcntl(999, F_SETFL, 0));

	// Appending switched on and off while writing.
	CHECK(write(fd, "abcdef", 6) == 6 && lseek(fd, 2, SEEK_SET) == 2);
	CHECK(write(fd, "X", 1) == 1);
	CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0 && write(fd, "Y", 1) == 1);
	CHECK(fcntl(fd, F_SETFL, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && write(fd, "Z", 1) == 1);
	char buf[20];
	CHECK(read_file("file", buf, sizeof buf) > 0);
	printf("%s\n", buf);
	return 0;
}
