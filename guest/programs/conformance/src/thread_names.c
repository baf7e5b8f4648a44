// Thread names: setname_np, getname_np, prctl, and /proc/self/task/TID/comm agree.
#include "conformance.h"

#include <sys/prctl.h>

static void comm(pid_t tid, char *buf, size_t n)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
	CHECK(read_file(path, buf, n) > 0);
	buf[strcspn(buf, "\n")] = 0;
}

static pthread_barrier_t bar;
static pid_t tid;

static void *worker(void *arg)
{
	char buf[32];
	tid = gettid();
	OK(pthread_setname_np(pthread_self(), "worker-a"));
	OK(pthread_getname_np(pthread_self(), buf, sizeof buf));
	printf("own name %s\n", buf);
	CHECK(prctl(PR_GET_NAME, buf) == 0);
	printf("prctl %s\n", buf);
	pthread_barrier_wait(&bar);
	pthread_barrier_wait(&bar);
	CHECK(prctl(PR_GET_NAME, buf) == 0);
	printf("renamed to %s\n", buf);
	return arg;
}

int main(void)
{
	char buf[32];
	OK(pthread_barrier_init(&bar, NULL, 2));
	SHOWE(pthread_setname_np(pthread_self(), "a name that is too long"));
	SHOWE(pthread_setname_np(pthread_self(), "fifteen-letters"));
	SHOWE(pthread_getname_np(pthread_self(), buf, 4));
	SHOWE(pthread_getname_np(pthread_self(), buf, 16));
	printf("main %s\n", buf);
	pthread_t t = start(worker, NULL);
	pthread_barrier_wait(&bar);
	SHOWE(pthread_getname_np(t, buf, sizeof buf));
	printf("from outside %s\n", buf);
	SHOWE(pthread_setname_np(t, "worker-b"));
	comm(tid, buf, sizeof buf);
	printf("comm %s\n", buf);
	pthread_barrier_wait(&bar);
	finish(t);
	CHECK(prctl(PR_SET_NAME, "cut off after fifteen") == 0);
	comm(gettid(), buf, sizeof buf);
	printf("main comm %s\n", buf);
	CHECK(read_file("/proc/self/comm", buf, sizeof buf) > 0);
	printf("process comm %s", buf);
	return 0;
}
