// FIFOs: opening waits for the other side, O_NONBLOCK does not, several writers, end of file, unlink while open.
#include "conformance.h"

#include <poll.h>

static void *open_late(void *arg)
{
	nap();
	int fd = open("fifo", (int)(intptr_t)arg);
	CHECK(fd >= 0);
	return (void *)(intptr_t)fd;
}

static void *write_and_close(void *arg)
{
	int fd = open("fifo", O_WRONLY);
	CHECK(fd >= 0 && write(fd, arg, 1) == 1 && close(fd) == 0);
	return NULL;
}

int main(void)
{
	char buf[10];
	SHOW(mkfifo("fifo", 0600));
	SHOW(mkfifo("fifo", 0600));
	SHOW(open("fifo", O_WRONLY | O_NONBLOCK));
	int r = open("fifo", O_RDONLY | O_NONBLOCK);
	CHECK(r >= 0);
	SHOW(read(r, buf, 1)); // no writer: end of file
	int w = open("fifo", O_WRONLY | O_NONBLOCK);
	CHECK(w >= 0);
	SHOW(read(r, buf, 1)); // a writer, no data
	SHOW(write(w, "abc", 3));
	SHOW(read(r, buf, 10));
	SHOW(lseek(r, 0, SEEK_SET));
	CHECK(close(w) == 0);
	SHOW(read(r, buf, 10));
	struct pollfd p = {.fd = r, .events = POLLIN};
	SHOW(poll(&p, 1, 0));
	printf("hup %d\n", (p.revents & POLLHUP) != 0);
	CHECK(close(r) == 0);

	// Rendezvous, either side first.
	pthread_t t = start(open_late, (void *)O_WRONLY);
	r = open("fifo", O_RDONLY);
	w = (intptr_t)finish(t);
	CHECK(r >= 0 && write(w, "hi", 2) == 2 && read(r, buf, 10) == 2);
	printf("reader first: %.2s\n", buf);
	CHECK(close(r) == 0 && close(w) == 0);
	t = start(open_late, (void *)O_RDONLY);
	w = open("fifo", O_WRONLY);
	r = (intptr_t)finish(t);
	CHECK(w >= 0 && write(w, "ho", 2) == 2 && read(r, buf, 10) == 2);
	printf("writer first: %.2s\n", buf);
	CHECK(close(w) == 0);

	// Writers come and go; with one end held open there is no end of file.
	w = open("fifo", O_RDWR);
	CHECK(w >= 0);
	pthread_t many[5];
	for (int i = 0; i < LEN(many); i++)
		many[i] = start(write_and_close, "abcde" + i);
	int sum = 0;
	for (int i = 0; i < LEN(many); i++) {
		CHECK(read(r, buf, 1) == 1);
		sum += buf[0] - 'a';
	}
	for (int i = 0; i < LEN(many); i++)
		finish(many[i]);
	printf("sum %d\n", sum);
	CHECK(unlink("fifo") == 0);
	SHOW(write(w, "z", 1));
	SHOW(read(w, buf, 1));
	SHOW(open("fifo", O_RDONLY));

	// Between processes.
	CHECK(mkfifo("other", 0600) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int fd = open("other", O_WRONLY);
		for (int i = 0; i < 100; i++)
			dprintf(fd, "line %d\n", i);
		_exit(0);
	}
	FILE *f = fopen("other", "r");
	char line[50];
	int lines = 0;
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		CHECK(atoi(line + 5) == lines++);
	printf("lines %d\n", lines);
	CHECK(wait_for(pid) == 0);
	return 0;
}
