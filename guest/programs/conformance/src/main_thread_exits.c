// The main thread ends by pthread_exit; the others continue, and the process ends with the last one, with status 0.
#include "conformance.h"

static pthread_t main_thread;

static void *last(void *arg)
{
	(void)arg;
	void *r;
	OK(pthread_join(main_thread, &r));
	printf("main returned %ld\n", (long)r);
	// The process id is still the id of the main thread, which has ended.
	CHECK(getpid() != gettid());
	CHECK(kill(getpid(), 0) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(getpid() == gettid() ? 4 : 5);
	printf("child: %s\n", status_text(wait_for(pid)));
	return NULL;
}

static void at_end(void)
{
	printf("atexit handler\n");
}

int main(void)
{
	main_thread = pthread_self();
	atexit(at_end);
	pthread_t t = start(last, NULL);
	OK(pthread_detach(t));
	pthread_exit((void *)9);
}
