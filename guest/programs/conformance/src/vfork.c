// vfork: the child runs first in its parent's memory and the parent sleeps until _exit or exec, other threads do not.
#include "conformance.h"

static volatile int shared_with_child;
static atomic_int other;
static atomic_bool stop;

static void *ticker(void *arg)
{
	while (!stop) {
		other++;
		sched_yield();
	}
	return arg;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		printf("after exec: %s\n", argv[1]);
		return 12;
	}
	for (int i = 0; i < 10; i++) {
		shared_with_child = 0;
		pid_t pid = vfork();
		CHECK(pid >= 0);
		if (pid == 0) {
			for (int k = 0; k < 50; k++)
				sched_yield();
			shared_with_child = i + 1;
			_exit(i);
		}
		CHECK(shared_with_child == i + 1);
		CHECK(wait_for(pid) == i << 8);
	}
	printf("memory shared\n");

	pthread_t t = start(ticker, NULL);
	pid_t pid = vfork();
	CHECK(pid >= 0);
	if (pid == 0) {
		// Another thread continues while the caller of vfork sleeps.
		int seen = other;
		while (other < seen + 5)
			sched_yield();
		execl("/proc/self/exe", "again", "vforked", NULL);
		_exit(1);
	}
	printf("%s\n", status_text(wait_for(pid)));
	stop = true;
	finish(t);

	pid = vfork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/no/such/program", "x", NULL);
		shared_with_child = errno;
		_exit(3);
	}
	printf("failed exec: %s, %s\n", errname(shared_with_child), status_text(wait_for(pid)));
	return 0;
}
