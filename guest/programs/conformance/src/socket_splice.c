// sendfile and splice to and from sockets: whole files, partial room, ends, errors and signals.
#include "inet.h"

#include <sys/sendfile.h>

enum { SIZE = 3000000 };

static atomic_int pipes;

static void count(int sig)
{
	(void)sig;
	pipes++;
}

static void *consume(void *fd)
{
	static unsigned char buf[70000];
	uint64_t sum = 0, total = 0;
	for (;;) {
		long n = read(*(int *)fd, buf, sizeof buf);
		CHECK(n >= 0);
		if (n == 0)
			break;
		for (long i = 0; i < n; i++)
			sum = sum * 31 + buf[i];
		total += n;
	}
	printf("%lu bytes, sum %lx\n", (unsigned long)total, (unsigned long)sum);
	return NULL;
}

static int file(void)
{
	static unsigned char b[SIZE];
	int f = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < SIZE; i++)
		b[i] = i * 2654435761u >> 13;
	CHECK(f >= 0 && write(f, b, SIZE) == SIZE && lseek(f, 0, SEEK_SET) == 0);
	return f;
}

static void pair(int s[2], int family)
{
	if (family == AF_UNIX)
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	else
		connection(s);
}

static void run(int family, int f)
{
	int s[2], p[2];
	CHECK(pipe(p) == 0 && lseek(f, 0, SEEK_SET) == 0);

	pair(s, family);
	pthread_t t = start(consume, &s[1]);
	long done = 0, n;
	while ((n = sendfile(s[0], f, NULL, SIZE)) > 0)
		done += n;
	printf("sendfile %ld, then %ld\n", done, n);
	off_t at = 1000;
	SHOW(sendfile(s[0], f, &at, 500));
	printf("at %ld, position %ld\n", (long)at, (long)lseek(f, 0, SEEK_CUR));
	CHECK(shutdown(s[0], SHUT_WR) == 0);
	finish(t);

	// From one socket through a pipe to another.
	int out[2];
	pair(s, family);
	pair(out, family);
	t = start(consume, &out[1]);
	CHECK(send(s[0], "through a pipe", 14, 0) == 14 && shutdown(s[0], SHUT_WR) == 0);
	while ((n = splice(s[1], NULL, p[1], NULL, 65536, 0)) > 0) {
		printf("from the socket %ld\n", n);
		while (n > 0) {
			long m = splice(p[0], NULL, out[0], NULL, n, 0);
			CHECK(m > 0);
			n -= m;
		}
	}
	printf("from the socket %ld\n", n);
	CHECK(shutdown(out[0], SHUT_WR) == 0);
	finish(t);
	CHECK(fcntl(out[1], F_SETFL, O_NONBLOCK) == 0 && fcntl(s[0], F_SETFL, O_NONBLOCK) == 0);
	SHOW(splice(s[0], NULL, p[1], NULL, 10, 0));
	SHOW(splice(s[0], NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	SHOW(splice(s[0], &at, p[1], NULL, 10, 0));
	SHOW(splice(s[0], NULL, s[1], NULL, 10, 0));
	SHOW(sendfile(f, s[0], NULL, 10));

	// The readers are closed.
	on_signal(SIGPIPE, count, 0);
	pipes = 0;
	pair(s, family);
	CHECK(shutdown(s[0], SHUT_WR) == 0 && write(p[1], "x", 1) == 1 && lseek(f, 0, SEEK_SET) == 0);
	SHOW(write(s[0], "x", 1));
	printf("SIGPIPE %d\n", pipes);
	SHOW(sendfile(s[0], f, NULL, 10));
	printf("SIGPIPE %d\n", pipes);
	SHOW(splice(p[0], NULL, s[0], NULL, 1, 0));
	printf("SIGPIPE %d\n", pipes);
	SHOW(send(s[0], "x", 1, MSG_NOSIGNAL));
	printf("SIGPIPE %d\n", pipes);
	printf("position %ld\n", (long)lseek(f, 0, SEEK_CUR));
}

int main(void)
{
	int f = file();
	run(AF_UNIX, f);
	run(AF_INET, f);
	CHECK(unlink("data") == 0);
	return 0;
}
