// Full queues of listeners: connections that wait, time out or are refused, over TCP and UNIX sockets.
#include "inet.h"

#include <poll.h>
#include <sys/un.h>

static void *take_later(void *l)
{
	usleep(20000);
	for (int i = 0; i < 3; i++)
		CHECK(accept(*(int *)l, NULL, NULL) >= 0);
	return NULL;
}

static void waiting_tcp(void)
{
	int l = tcp();
	CHECK(bind_to(l, 0) == 0 && listen(l, 1) == 0);
	for (int i = 0; i < 2; i++)
		SHOW(connect_to(tcp(), port_of(l)));
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	SHOW(connect_to(s, port_of(l)));
	struct pollfd p = {s, POLLOUT, 0};
	SHOW(poll(&p, 1, 20));
	SHOW(connect_to(s, port_of(l)));
	int t = tcp();
	struct timeval tv = {0, 20000};
	CHECK(setsockopt(t, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv) == 0);
	SHOW(connect_to(t, port_of(l)));
	SHOW(connect_to(t, port_of(l)));
	SHOW(close(t));
	pthread_t taker = start(take_later, &l);
	SHOW(poll(&p, 1, 10000));
	printf("revents %x\n", p.revents);
	SHOW(connect_to(s, port_of(l)));
	SHOW(connect_to(s, port_of(l)));
	finish(taker);

	// A listener that is closed with connections in its queue.
	CHECK(listen(l, 5) == 0);
	s = tcp();
	CHECK(connect_to(s, port_of(l)) == 0 && close(l) == 0);
	SHOW(recv(s, &(char){0}, 1, 0));
}

static void waiting_unix(void)
{
	struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "\0conformance-backlog"};
	socklen_t n = offsetof(struct sockaddr_un, sun_path) + 20;
	int l = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(u.sun_path + 1, 30, "backlog-%d", getpid());
	CHECK(bind(l, (struct sockaddr *)&u, n) == 0 && listen(l, 1) == 0);
	SHOW(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&u, n));
	for (int i = 0; i < 2; i++)
		SHOW(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&u, n));
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	SHOW(connect(s, (struct sockaddr *)&u, n));
	struct pollfd p = {s, POLLOUT, 0};
	SHOW(poll(&p, 1, 0));
	printf("revents %x\n", p.revents);
	pthread_t taker = start(take_later, &l);
	SHOW(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&u, n));
	finish(taker);
	int last = socket(AF_UNIX, SOCK_STREAM, 0);
	SHOW(connect(last, (struct sockaddr *)&u, n));
	CHECK(close(l) == 0);
	SHOW(recv(last, &(char){0}, 1, 0));
	SHOW(recv(last, &(char){0}, 1, 0));
	SHOW(send(last, "x", 1, MSG_NOSIGNAL));
	SHOW(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&u, n));
}

int main(void)
{
	waiting_tcp();
	waiting_unix();
	return 0;
}
