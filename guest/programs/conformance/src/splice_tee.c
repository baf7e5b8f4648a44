// splice, tee and vmsplice between files, pipes and sockets; refused kinds of descriptors.
#include "conformance.h"

#include <sys/socket.h>
#include <sys/uio.h>

int main(void)
{
	char buf[100] = {0};
	int a[2], b[2];
	CHECK(pipe2(a, O_NONBLOCK) == 0 && pipe2(b, O_NONBLOCK) == 0);
	write_file("in", "0123456789");
	int in = open("in", O_RDONLY), out = open("out", O_RDWR | O_CREAT, 0600);
	off_t off = 3;
	SHOW(splice(in, NULL, a[1], NULL, 4, 0));
	SHOW(splice(in, &off, a[1], NULL, 2, 0));
	printf("offset %ld\n", (long)off);
	SHOW(lseek(in, 0, SEEK_CUR));
	// tee does not consume the data.
	SHOW(tee(a[0], b[1], 5, 0));
	SHOW(read(b[0], buf, sizeof buf));
	printf("%.5s\n", buf);
	SHOW(splice(a[0], NULL, out, NULL, 4, 0));
	SHOW(splice(a[0], NULL, b[1], NULL, 100, 0));
	SHOW(read(b[0], buf, sizeof buf));
	printf("%.2s\n", buf);
	off = 6;
	SHOW(vmsplice(a[1], &(struct iovec){"user", 4}, 1, 0));
	SHOW(splice(a[0], NULL, out, &off, 100, 0));
	ssize_t n = pread(out, buf, sizeof buf, 0);
	for (int i = 0; i < n; i++)
		printf("%c", buf[i] ? buf[i] : '.');
	printf("\n");
	SHOW(splice(a[0], NULL, b[1], NULL, 1, SPLICE_F_NONBLOCK));
	SHOW(splice(in, NULL, out, NULL, 4, 0));
	SHOW(splice(a[0], &off, out, NULL, 4, 0));
	SHOW(tee(in, b[1], 4, 0));
	SHOW(tee(a[0], a[1], 4, 0));
	SHOW(splice(in, NULL, 999, NULL, 4, 0));
	SHOW(splice(in, NULL, a[1], NULL, 0, 0));
	off = 10;
	SHOW(splice(in, &off, a[1], NULL, 4, 0));

	int pair[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	SHOW(write(a[1], "to socket", 9));
	SHOW(splice(a[0], NULL, pair[0], NULL, 100, 0));
	SHOW(read(pair[1], buf, sizeof buf));
	SHOW(write(pair[1], "from socket", 11));
	SHOW(splice(pair[0], NULL, a[1], NULL, 100, 0));
	SHOW(read(a[0], buf, sizeof buf));
	printf("%.11s\n", buf);
	CHECK(close(a[1]) == 0);
	SHOW(splice(a[0], NULL, b[1], NULL, 4, 0));
	CHECK(close(b[0]) == 0);
	return 0;
}
