// sendfile and copy_file_range: with and without offsets, to files, pipes and sockets, short ends, refused pairs.
#include "conformance.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

int main(void)
{
	char buf[200];
	off_t off = 2;
	write_file("in", "0123456789");
	int in = open("in", O_RDONLY), out = open("out", O_RDWR | O_CREAT, 0600), ends[2], pair[2];
	CHECK(in >= 0 && out >= 0 && pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	SHOW(sendfile(out, in, NULL, 4));
	SHOW(lseek(in, 0, SEEK_CUR));
	SHOW(sendfile(out, in, &off, 3));
	printf("offset %ld\n", (long)off);
	SHOW(lseek(in, 0, SEEK_CUR));
	SHOW(sendfile(out, in, NULL, 100));
	SHOW(sendfile(out, in, NULL, 100));
	off = 0;
	SHOW(sendfile(ends[1], in, &off, 5));
	SHOW(read(ends[0], buf, sizeof buf));
	SHOW(sendfile(pair[0], in, &off, 5));
	SHOW(read(pair[1], buf, sizeof buf));
	CHECK(read_file("out", buf, sizeof buf) > 0);
	printf("%s\n", buf);
	SHOW(sendfile(in, out, NULL, 5));
	SHOW(sendfile(out, 999, NULL, 5));
	SHOW(sendfile(out, pair[0], NULL, 5));
	off = -1;
	SHOW(sendfile(out, in, &off, 5));

	// copy_file_range.
	int from = open("in", O_RDWR), to = open("copy", O_RDWR | O_CREAT, 0600);
	off_t a = 1, b = 5;
	SHOW(copy_file_range(from, NULL, to, NULL, 4, 0));
	SHOW(copy_file_range(from, &a, to, &b, 3, 0));
	printf("offsets %ld %ld\n", (long)a, (long)b);
	SHOW(copy_file_range(from, NULL, to, NULL, 100, 0));
	SHOW(copy_file_range(from, NULL, to, NULL, 100, 0));
	memset(buf, 0, sizeof buf);
	ssize_t n = pread(to, buf, sizeof buf, 0);
	for (int i = 0; i < n; i++)
		printf("%c", buf[i] ? buf[i] : '.');
	printf("\n");
	SHOW(copy_file_range(from, NULL, to, NULL, 4, 77));
	a = 0, b = 2;
	SHOW(copy_file_range(from, &a, from, &b, 5, 0));
	SHOW(copy_file_range(from, NULL, ends[1], NULL, 4, 0));
	SHOW(copy_file_range(from, NULL, open("in", O_RDONLY), NULL, 4, 0));
	SHOW(copy_file_range(open(".", O_RDONLY), NULL, to, NULL, 4, 0));

	// A larger file, through sendfile in pieces.
	static char big[300000], back[300000];
	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (char)(i * 31 >> 3);
	int large = open("large", O_RDWR | O_CREAT, 0600), twin = open("twin", O_RDWR | O_CREAT, 0600);
	CHECK(write(large, big, sizeof big) == sizeof big);
	off = 0;
	while (off < (off_t)sizeof big)
		CHECK(sendfile(twin, large, &off, 70000) > 0);
	CHECK(pread(twin, back, sizeof back, 0) == sizeof back);
	printf("large copy equal: %d\n", memcmp(big, back, sizeof big) == 0);
	return 0;
}
