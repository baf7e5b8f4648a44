// TCP over loopback: a threaded echo server, six clients with 40 KB each, addresses on both ends, orderly end.
#include "inet.h"

enum { CLIENTS = 6, BYTES = 40000 };

static uint16_t port;
static atomic_int served;

static void *serve(void *arg)
{
	int s = (intptr_t)arg;
	char buf[3000];
	ssize_t n;
	while ((n = read(s, buf, sizeof buf)) > 0)
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write(s, buf + done, n - done);
			CHECK(w > 0);
			done += w;
		}
	CHECK(n == 0 && close(s) == 0);
	served++;
	return NULL;
}

static void *server(void *arg)
{
	int l = (intptr_t)arg;
	pthread_t t[CLIENTS];
	for (int i = 0; i < CLIENTS; i++) {
		struct sockaddr_in a;
		socklen_t n = sizeof a;
		int s = accept4(l, (struct sockaddr *)&a, &n, SOCK_CLOEXEC);
		CHECK(s >= 0 && n == sizeof a && a.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && a.sin_port != 0);
		CHECK(fcntl(s, F_GETFD) == FD_CLOEXEC);
		t[i] = start(serve, (void *)(intptr_t)s);
	}
	for (int i = 0; i < CLIENTS; i++)
		finish(t[i]);
	return NULL;
}

static void *sender(void *arg)
{
	int *io = arg;
	char buf[1000];
	for (int sent = 0; sent < BYTES; sent += sizeof buf) {
		for (size_t i = 0; i < sizeof buf; i++)
			buf[i] = (char)((sent + i) * io[1] >> 2);
		CHECK(send(io[0], buf, sizeof buf, 0) == sizeof buf);
	}
	CHECK(shutdown(io[0], SHUT_WR) == 0);
	return NULL;
}

static void *client(void *arg)
{
	int s = tcp(), me = (intptr_t)arg, io[2] = {s, me + 3};
	CHECK(connect_to(s, port) == 0);
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	CHECK(getpeername(s, (struct sockaddr *)&a, &n) == 0 && ntohs(a.sin_port) == port && port_of(s) != 0);
	pthread_t t = start(sender, io);
	char buf[1700];
	long got = 0;
	ssize_t r;
	while ((r = recv(s, buf, sizeof buf, 0)) > 0) {
		for (ssize_t i = 0; i < r; i++)
			CHECK(buf[i] == (char)((got + i) * io[1] >> 2));
		got += r;
	}
	CHECK(r == 0);
	finish(t);
	CHECK(close(s) == 0);
	return (void *)got;
}

int main(void)
{
	int l = listener();
	port = port_of(l);
	pthread_t s = start(server, (void *)(intptr_t)l), c[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		c[i] = start(client, (void *)(intptr_t)i);
	for (int i = 0; i < CLIENTS; i++)
		printf("client %d: %ld\n", i, (long)finish(c[i]));
	finish(s);
	printf("served %d\n", served);
	return 0;
}
