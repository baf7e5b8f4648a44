// pthread_once and call_once: many threads, one run; a cancelled initialiser runs again.
#include "conformance.h"

#include <threads.h>

static pthread_once_t once = PTHREAD_ONCE_INIT, again = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static int runs, flag_runs, attempts;
static atomic_int in_first;

static void init(void)
{
	nap();
	runs++;
}

static void flag_init(void)
{
	flag_runs++;
}

static void slow_first(void)
{
	if (attempts++ == 0) {
		in_first = 1;
		for (;;)
			pause();
	}
}

static void *work(void *arg)
{
	(void)arg;
	OK(pthread_once(&once, init));
	CHECK(runs == 1);
	call_once(&flag, flag_init);
	CHECK(flag_runs == 1);
	return NULL;
}

static void *do_again(void *arg)
{
	(void)arg;
	OK(pthread_once(&again, slow_first));
	return NULL;
}

int main(void)
{
	pthread_t t[8];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("runs %d %d\n", runs, flag_runs);

	pthread_t first = start(do_again, NULL);
	while (!in_first)
		nap();
	pthread_t second = start(do_again, NULL);
	nap();
	OK(pthread_cancel(first));
	printf("first cancelled: %d\n", finish(first) == PTHREAD_CANCELED);
	printf("second returned: %d\n", finish(second) == NULL);
	printf("attempts %d\n", attempts);
	return 0;
}
