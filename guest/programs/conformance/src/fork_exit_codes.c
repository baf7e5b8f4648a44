// fork and wait: return values, every exit status, memory that is a copy, parent and child ids.
#include "conformance.h"

static int global = 5;

int main(void)
{
	static const int codes[] = {0, 1, 2, 63, 127, 128, 200, 254, 255, 256, 259, -1};
	for (int i = 0; i < LEN(codes); i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(codes[i]);
		printf("_exit(%d): %s\n", codes[i], status_text(wait_for(pid)));
	}

	int local = 7;
	char *heap = strdup("parent");
	pid_t me = getpid(), pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(getppid() == me && getpid() != me && gettid() == getpid());
		CHECK(global == 5 && local == 7 && strcmp(heap, "parent") == 0);
		global = local = 9;
		strcpy(heap, "child!");
		exit(global + local);
	}
	printf("%s\n", status_text(wait_for(pid)));
	printf("%d %d %s\n", global, local, heap);
	CHECK(getpid() == me);

	// A tree of processes, three deep, three wide: each exit status is the sum of its subtree.
	int depth = 0, sum = 1, children = 0;
	pid_t child[3];
	bool root = true;
	while (depth < 3 && children < LEN(child)) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			depth++;
			children = 0;
			root = false;
		} else {
			child[children++] = pid;
		}
	}
	for (int i = 0; i < children; i++) {
		int status = wait_for(child[i]);
		CHECK(WIFEXITED(status));
		sum += WEXITSTATUS(status);
	}
	if (!root)
		_exit(sum);
	printf("processes %d\n", sum);
	return 0;
}
