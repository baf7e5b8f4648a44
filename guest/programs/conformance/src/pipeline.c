// A pipeline of four processes as a shell makes it: fork, dup2, exec; 300 KB go through generator, mapper, filter, counter.
#include "conformance.h"

enum { LINES = 20000 };

static int stage(int n)
{
	char line[64];
	unsigned long count = 0, sum = 0;
	switch (n) {
	case 0:
		for (int i = 0; i < LINES; i++)
			printf("line %d\n", i);
		return 0;
	case 1:
		while (fgets(line, sizeof line, stdin))
			printf("%ld\n", strtol(line + 5, NULL, 10) * 3);
		return 0;
	case 2:
		while (fgets(line, sizeof line, stdin))
			if (strtol(line, NULL, 10) % 2 == 0)
				fputs(line, stdout);
		return 0;
	default:
		while (fgets(line, sizeof line, stdin)) {
			count++;
			sum += strtoul(line, NULL, 10);
		}
		printf("count %lu, sum %lu\n", count, sum);
		return 0;
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		setvbuf(stdout, NULL, _IOFBF, 4096);
		return stage(atoi(argv[1]));
	}
	pid_t pid[4];
	int in = -1;
	for (int i = 0; i < LEN(pid); i++) {
		int ends[2] = {-1, -1};
		if (i < LEN(pid) - 1)
			CHECK(pipe2(ends, O_CLOEXEC) == 0);
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0) {
			char arg[2] = {'0' + i, 0};
			if (in >= 0)
				CHECK(dup2(in, 0) == 0);
			if (ends[1] >= 0)
				CHECK(dup2(ends[1], 1) == 1);
			execl("/proc/self/exe", "stage", arg, NULL);
			_exit(127);
		}
		if (in >= 0)
			close(in);
		if (ends[1] >= 0)
			close(ends[1]);
		in = ends[0];
	}
	int status[LEN(pid)];
	for (int i = 0; i < LEN(pid); i++)
		status[i] = wait_for(pid[i]);
	for (int i = 0; i < LEN(pid); i++)
		printf("stage %d: %s\n", i, status_text(status[i]));
	return 0;
}
