// exec from a thread that is not the main one, while others spin, sleep and hold locks: the process id stays.
#include "conformance.h"

static atomic_int ready;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char id[20];

static void *spin(void *arg)
{
	ready++;
	for (;;)
		sched_yield();
	return arg;
}

static void *sleeper(void *arg)
{
	ready++;
	for (;;)
		pause();
	return arg;
}

static void *blocked(void *arg)
{
	ready++;
	OK(pthread_mutex_lock(&mu));
	return arg;
}

static void *changer(void *arg)
{
	while (ready < 3)
		nap();
	CHECK(gettid() != getpid());
	execl("/proc/self/exe", "again", id, NULL);
	return arg;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		printf("same process %d, main thread %d\n", getpid() == atoi(argv[1]), gettid() == getpid());
		char buf[8192];
		CHECK(read_file("/proc/self/status", buf, sizeof buf) > 0);
		char *threads = strstr(buf, "Threads:");
		CHECK(threads != NULL);
		printf("threads %ld\n", strtol(threads + 8, NULL, 10));
		// Threads work as usual.
		ready = 10;
		pthread_t t = start(blocked, NULL);
		finish(t);
		printf("ready %d\n", ready);
		return 21;
	}
	// In a child, so that the parent sees one process and one status.
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid != 0) {
		printf("%s\n", status_text(wait_for(pid)));
		return 0;
	}
	snprintf(id, sizeof id, "%d", getpid());
	OK(pthread_mutex_lock(&mu));
	start(spin, NULL);
	start(sleeper, NULL);
	start(blocked, NULL);
	finish(start(changer, NULL));
	return 1;
}
