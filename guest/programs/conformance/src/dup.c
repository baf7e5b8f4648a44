// dup, dup2, dup3, F_DUPFD: lowest numbers, shared offsets and flags, own close-on-exec, close_range.
#include "conformance.h"

int main(void)
{
	write_file("file", "0123456789");
	int fd = open("file", O_RDWR);
	SHOW(fd);
	SHOW(dup(fd));
	SHOW(dup2(fd, 10));
	SHOW(dup2(fd, fd));
	SHOW(dup3(fd, 11, O_CLOEXEC));
	SHOW(dup3(fd, fd, 0));
	SHOW(dup3(fd, 12, 077));
	SHOW(fcntl(fd, F_DUPFD, 20));
	SHOW(fcntl(fd, F_DUPFD, 20));
	SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 5));
	SHOW(fcntl(10, F_GETFD));
	SHOW(fcntl(11, F_GETFD));
	SHOW(fcntl(5, F_GETFD));
	SHOW(fcntl(10, F_SETFD, FD_CLOEXEC));
	SHOW(fcntl(10, F_GETFD));
	SHOW(fcntl(fd, F_GETFD));

	// One offset and one set of status flags for all of them.
	char c;
	CHECK(read(fd, &c, 1) == 1 && read(10, &c, 1) == 1 && read(20, &c, 1) == 1);
	printf("third byte %c\n", c);
	SHOW(lseek(11, 0, SEEK_CUR));
	SHOW(fcntl(11, F_SETFL, O_APPEND));
	printf("append on the first: %d\n", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
	int other = open("file", O_RDONLY);
	SHOW(other);
	SHOW(lseek(other, 0, SEEK_CUR));

	// dup2 closes the old file of its target; the lowest free number is next.
	SHOW(dup2(other, 10));
	SHOW(close(4));
	SHOW(dup(other));
	SHOW(close(4));
	SHOW(close(4));
	SHOW(dup(4));
	SHOW(dup2(4, 30));
	SHOW(dup2(fd, -1));
	SHOW(dup2(fd, 1 << 30));
	SHOW(fcntl(fd, F_DUPFD, -1));
	SHOW(fcntl(fd, 12345, 0));
	SHOW(fcntl(999, F_GETFD));
	SHOW(fcntl(30, F_GETFD));

	int r = close_range(20, 25, 0);
	if (r == -1 && errno == ENOSYS)
		for (int i = 20; i <= 25; i++)
			close(i);
	SHOW(fcntl(20, F_GETFD));
	SHOW(fcntl(21, F_GETFD));
	SHOW(fcntl(11, F_GETFD));

	// Over fork the descriptors are copies of the same open file.
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(lseek(fd, 7, SEEK_SET) == 7);
		CHECK(close(fd) == 0);
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	SHOW(lseek(fd, 0, SEEK_CUR));
	return 0;
}
