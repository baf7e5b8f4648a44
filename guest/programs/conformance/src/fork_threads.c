// fork in a threaded program: only the caller lives in the child, which may start threads again; many forks at once.
#include "conformance.h"

#include <dirent.h>

static atomic_bool stop;
static atomic_int spins;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static int tasks(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	CHECK(d != NULL);
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	CHECK(closedir(d) == 0);
	return n;
}

static void *spinner(void *arg)
{
	while (!stop) {
		spins++;
		sched_yield();
	}
	return arg;
}

static void *count(void *arg)
{
	for (int i = 0; i < 50; i++) {
		OK(pthread_mutex_lock(&mu));
		counter++;
		OK(pthread_mutex_unlock(&mu));
	}
	return arg;
}

static _Thread_local int mark;

static void *forker(void *arg)
{
	int sum = 0;
	mark = (intptr_t)arg;
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			// This thread is the child's main thread now.
			CHECK(gettid() == getpid() && mark == (intptr_t)arg);
			_exit(mark);
		}
		int status = wait_for(pid);
		CHECK(WIFEXITED(status));
		sum += WEXITSTATUS(status);
	}
	return (void *)(intptr_t)sum;
}

int main(void)
{
	pthread_t s[3];
	for (int i = 0; i < LEN(s); i++)
		s[i] = start(spinner, NULL);
	printf("tasks in the parent: %d\n", tasks());
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int before = spins;
		printf("tasks in the child: %d\n", tasks());
		for (int i = 0; i < 20; i++)
			sched_yield();
		CHECK(spins == before);
		pthread_t t[4];
		for (int i = 0; i < LEN(t); i++)
			t[i] = start(count, NULL);
		for (int i = 0; i < LEN(t); i++)
			finish(t[i]);
		printf("counter in the child: %d\n", counter);
		exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
	printf("counter in the parent: %d\n", counter);

	pthread_t f[4];
	for (int i = 0; i < LEN(f); i++)
		f[i] = start(forker, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < LEN(f); i++)
		printf("forker %d: %ld\n", i, (long)finish(f[i]));
	stop = true;
	for (int i = 0; i < LEN(s); i++)
		finish(s[i]);
	return 0;
}
