// After fork a futex in private memory is two futexes: neither private nor shared wakes cross from parent to child.
#include "futex.h"

static atomic_uint word, room;

static void *sleeper(void *arg)
{
	return (void *)futex(&word, FUTEX_WAIT | (int)(intptr_t)arg, 0, NULL, NULL, 0);
}

static void child(int flags, int to_parent, int from_parent)
{
	char c;
	pthread_t t = start(sleeper, (void *)(intptr_t)flags);
	gather(&word, &room, 1, flags);
	CHECK(write(to_parent, "x", 1) == 1);
	CHECK(read(from_parent, &c, 1) == 1);
	CHECK(futex(&room, FUTEX_WAKE | flags, 9, NULL, NULL, 0) == 1);
	CHECK(finish(t) == NULL);
	_exit(0);
}

int main(void)
{
	static const int flags[] = {0, FUTEX_PRIVATE_FLAG};
	for (int i = 0; i < LEN(flags); i++) {
		int up[2], down[2];
		char c;
		CHECK(pipe(up) == 0 && pipe(down) == 0);
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			child(flags[i], up[1], down[0]);
		CHECK(read(up[0], &c, 1) == 1);
		SHOW(futex(&room, FUTEX_WAKE, 9, NULL, NULL, 0));
		SHOW(futex(&room, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
		CHECK(write(down[1], "x", 1) == 1);
		printf("child: %s\n", status_text(wait_for(pid)));
	}
	return 0;
}
