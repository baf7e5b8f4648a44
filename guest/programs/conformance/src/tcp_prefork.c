// Four processes accept from one listening socket; forty connections are each served by exactly one of them.
#include "inet.h"

#include <poll.h>

int main(void)
{
	int l = listener();
	uint16_t port = port_of(l);
	atomic_int *served = shared_memory(4096);
	pid_t pid[4];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] != 0)
			continue;
		for (;;) {
			char c;
			int s = accept(l, NULL, NULL);
			CHECK(s >= 0 && recv(s, &c, 1, 0) == 1);
			if (c == 'q')
				_exit(0);
			(*served)++;
			c++;
			CHECK(send(s, &c, 1, 0) == 1 && close(s) == 0);
		}
	}
	CHECK(close(l) == 0);
	int sum = 0;
	for (int i = 0; i < 40; i++) {
		int s = tcp();
		char c = i;
		CHECK(connect_to(s, port) == 0 && send(s, &c, 1, 0) == 1 && recv(s, &c, 1, 0) == 1);
		CHECK(c == (char)(i + 1) && recv(s, &c, 1, 0) == 0 && close(s) == 0);
		sum += i;
	}
	for (int i = 0; i < LEN(pid); i++) {
		int s = tcp();
		CHECK(connect_to(s, port) == 0 && send(s, "q", 1, 0) == 1);
	}
	for (int i = 0; i < LEN(pid); i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("served %d, sum %d\n", *served, sum);
	// When the last of them ends the port is closed.
	SHOW(connect_to(tcp(), port));
	return 0;
}
