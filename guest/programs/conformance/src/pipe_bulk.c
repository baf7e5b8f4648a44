// 600 KB through a pipe in uneven pieces between threads and through a chain of five; blocking on both sides.
#include "conformance.h"

enum { TOTAL = 600000, STAGES = 5 };

static int link_[STAGES + 1][2];

static void *source(void *arg)
{
	unsigned char buf[7000];
	long sent = 0;
	for (int k = 0; sent < TOTAL; k++) {
		size_t n = 1 + k * 997 % sizeof buf;
		if (n > (size_t)(TOTAL - sent))
			n = TOTAL - sent;
		for (size_t i = 0; i < n; i++)
			buf[i] = (sent + i) * 31 >> 4;
		size_t done = 0;
		while (done < n) {
			ssize_t r = write(link_[0][1], buf + done, n - done);
			CHECK(r > 0);
			done += r;
		}
		sent += n;
	}
	CHECK(close(link_[0][1]) == 0);
	return arg;
}

static void *stage(void *arg)
{
	int me = (intptr_t)arg;
	unsigned char buf[5000];
	ssize_t r;
	while ((r = read(link_[me][0], buf, 100 + me * 1200)) > 0)
		CHECK(write(link_[me + 1][1], buf, r) == r);
	CHECK(r == 0 && close(link_[me + 1][1]) == 0);
	return NULL;
}

int main(void)
{
	for (int i = 0; i <= STAGES; i++)
		CHECK(pipe(link_[i]) == 0);
	pthread_t t[STAGES + 1];
	t[STAGES] = start(source, NULL);
	for (int i = 0; i < STAGES; i++)
		t[i] = start(stage, (void *)(intptr_t)i);
	unsigned char buf[3000];
	long got = 0;
	ssize_t r;
	while ((r = read(link_[STAGES][0], buf, sizeof buf)) > 0) {
		for (ssize_t i = 0; i < r; i++)
			CHECK(buf[i] == (unsigned char)((got + i) * 31 >> 4));
		got += r;
	}
	for (int i = 0; i <= STAGES; i++)
		finish(t[i]);
	printf("bytes %ld\n", got);
	return 0;
}
