// O_APPEND from eight threads and two processes: no record torn or lost, each writer's in order.
#include "conformance.h"

enum { THREADS = 8, RECORDS = 60, SIZE = 40 };

static void *writer(void *arg)
{
	int me = (intptr_t)arg;
	int fd = open("log", O_WRONLY | O_APPEND);
	CHECK(fd >= 0);
	for (int i = 0; i < RECORDS; i++) {
		char rec[SIZE + 1];
		snprintf(rec, sizeof rec, "%02d %03d ", me, i);
		memset(rec + 7, 'a' + me, SIZE - 8);
		rec[SIZE - 1] = '\n';
		CHECK(write(fd, rec, SIZE) == SIZE);
	}
	CHECK(close(fd) == 0);
	return NULL;
}

int main(void)
{
	write_file("log", "");
	pid_t pid = fork();
	CHECK(pid >= 0);
	int base = pid == 0 ? THREADS : 0;
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(writer, (void *)(intptr_t)(base + i));
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	if (pid == 0)
		_exit(0);
	CHECK(wait_for(pid) == 0);

	FILE *f = fopen("log", "r");
	char line[100];
	int next[2 * THREADS] = {0}, total = 0;
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f)) {
		int who, i;
		CHECK(strlen(line) == SIZE && sscanf(line, "%d %d", &who, &i) == 2);
		CHECK(i == next[who]++);
		for (int k = 7; k < SIZE - 1; k++)
			CHECK(line[k] == 'a' + who);
		total++;
	}
	CHECK(fclose(f) == 0);
	printf("records %d\n", total);
	return 0;
}
