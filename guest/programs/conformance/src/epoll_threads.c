// Several threads in epoll_wait on one epoll: every event is taken once with EPOLLET and ONESHOT; entries change meanwhile.
#include "conformance.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { THREADS = 4, EVENTS = 300, SOURCES = 5 };

static int ep, fd[SOURCES], stop_fd;
static atomic_int taken[SOURCES], total;

static void *worker(void *arg)
{
	for (;;) {
		struct epoll_event ev;
		int n = epoll_wait(ep, &ev, 1, -1);
		CHECK(n == 1);
		if (ev.data.u32 == SOURCES)
			return arg;
		int i = ev.data.u32;
		eventfd_t v;
		CHECK(eventfd_read(fd[i], &v) == 0);
		taken[i] += v;
		total += v;
		// One-shot: no other thread was woken for this descriptor meanwhile.
		ev.events = EPOLLIN | EPOLLONESHOT;
		CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fd[i], &ev) == 0);
	}
}

static void *edge_waiter(void *arg)
{
	struct epoll_event ev;
	CHECK(epoll_wait((int)(intptr_t)arg, &ev, 1, -1) == 1);
	return (void *)(intptr_t)ev.data.u32;
}

int main(void)
{
	CHECK((ep = epoll_create1(0)) >= 0);
	for (int i = 0; i < SOURCES; i++) {
		CHECK((fd[i] = eventfd(0, EFD_NONBLOCK)) >= 0);
		struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = i};
		CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &ev) == 0);
	}
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, NULL);
	for (int i = 0; i < EVENTS; i++) {
		CHECK(eventfd_write(fd[i % SOURCES], 1) == 0);
		if (i % 20 == 0)
			sched_yield();
	}
	while (total < EVENTS)
		nap();
	CHECK((stop_fd = eventfd(1, 0)) >= 0);
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = SOURCES};
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, stop_fd, &ev) == 0);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (int i = 0; i < SOURCES; i++)
		printf("source %d: %d\n", i, taken[i]);

	// A waiter is woken by an entry that is added, or becomes ready, later.
	int other = epoll_create1(0), e = eventfd(1, 0);
	pthread_t w = start(edge_waiter, (void *)(intptr_t)other);
	nap();
	ev = (struct epoll_event){.events = EPOLLIN, .data.u32 = 42};
	CHECK(epoll_ctl(other, EPOLL_CTL_ADD, e, &ev) == 0);
	printf("added later: %ld\n", (long)finish(w));
	ev.events = 0;
	CHECK(epoll_ctl(other, EPOLL_CTL_MOD, e, &ev) == 0);
	w = start(edge_waiter, (void *)(intptr_t)other);
	nap();
	ev.events = EPOLLIN;
	ev.data.u32 = 43;
	CHECK(epoll_ctl(other, EPOLL_CTL_MOD, e, &ev) == 0);
	printf("modified later: %ld\n", (long)finish(w));
	return 0;
}
