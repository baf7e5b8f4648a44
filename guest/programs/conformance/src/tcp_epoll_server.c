// One epoll thread serves twenty-four clients of three processes; every reply is its request, upper-cased.
#include "inet.h"

#include <ctype.h>
#include <sys/epoll.h>

enum { PROCESSES = 3, CLIENTS = 8, ROUNDS = 5 };

static void clients(uint16_t port, int who)
{
	int s[CLIENTS];
	char line[50], reply[50];
	for (int i = 0; i < CLIENTS; i++) {
		s[i] = tcp();
		CHECK(connect_to(s[i], port) == 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CLIENTS; i++) {
			int n = snprintf(line, sizeof line, "process %d client %d round %d\n", who, i, round);
			CHECK(send(s[i], line, n, 0) == n);
		}
		for (int i = 0; i < CLIENTS; i++) {
			int n = snprintf(line, sizeof line, "PROCESS %d CLIENT %d ROUND %d\n", who, i, round);
			CHECK(recv(s[i], reply, n, MSG_WAITALL) == n && memcmp(line, reply, n) == 0);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		CHECK(close(s[i]) == 0);
	_exit(0);
}

int main(void)
{
	int l = listener(), ep = epoll_create1(0), open_ = 0, accepted = 0, replies = 0;
	uint16_t port = port_of(l);
	pid_t pid[PROCESSES];
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0)
			clients(port, i);
	}
	CHECK(fcntl(l, F_SETFL, O_NONBLOCK) == 0);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = l};
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev) == 0);
	while (accepted < PROCESSES * CLIENTS || open_ > 0) {
		struct epoll_event got[8];
		int n = epoll_wait(ep, got, LEN(got), -1);
		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			int fd = got[i].data.fd;
			if (fd == l) {
				int s;
				while ((s = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					ev = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data.fd = s};
					CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, s, &ev) == 0);
					accepted++;
					open_++;
				}
				CHECK(errno == EAGAIN);
				continue;
			}
			char buf[200];
			ssize_t r;
			while ((r = recv(fd, buf, sizeof buf, 0)) > 0) {
				for (ssize_t k = 0; k < r; k++) {
					buf[k] = toupper(buf[k]);
					replies += buf[k] == '\n';
				}
				CHECK(send(fd, buf, r, 0) == r);
			}
			if (r == 0) {
				CHECK(close(fd) == 0);
				open_--;
			} else {
				CHECK(errno == EAGAIN);
			}
		}
	}
	for (int i = 0; i < PROCESSES; i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("accepted %d, replies %d\n", accepted, replies);
	return 0;
}
