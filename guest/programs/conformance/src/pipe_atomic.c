// Writes of up to PIPE_BUF bytes by six threads and two processes are never mixed, and each writer's all arrive.
#include "conformance.h"

enum { WRITERS = 6, EACH = 40, RECORD = 500 };

static int p[2];
static atomic_int got[2 * WRITERS];

static void *writer(void *arg)
{
	int me = (intptr_t)arg;
	char rec[RECORD];
	for (int i = 0; i < EACH; i++) {
		memset(rec, 'a' + me, sizeof rec);
		CHECK(write(p[1], rec, sizeof rec) == sizeof rec);
	}
	return NULL;
}

static void *reader(void *arg)
{
	char rec[RECORD];
	ssize_t r;
	// Records are of one length, and a read takes one whole record.
	while ((r = read(p[0], rec, sizeof rec)) > 0) {
		CHECK(r == RECORD);
		for (int i = 1; i < RECORD; i++)
			CHECK(rec[i] == rec[0]);
		got[rec[0] - 'a']++;
	}
	CHECK(r == 0);
	return arg;
}

int main(void)
{
	CHECK(pipe(p) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	int base = pid == 0 ? WRITERS : 0;
	pthread_t w[WRITERS], r = 0;
	for (int i = 0; i < WRITERS; i++)
		w[i] = start(writer, (void *)(intptr_t)(base + i));
	if (pid != 0)
		r = start(reader, NULL);
	for (int i = 0; i < WRITERS; i++)
		finish(w[i]);
	if (pid == 0)
		_exit(0);
	CHECK(wait_for(pid) == 0 && close(p[1]) == 0);
	finish(r);
	for (int i = 0; i < 2 * WRITERS; i++)
		printf("%c %d\n", 'a' + i, got[i]);
	return 0;
}
