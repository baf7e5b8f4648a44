// Cleanup handlers: order under cancel, pthread_exit and pop; a cancelled condition wait owns its mutex again.
#include "conformance.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int waiting;

static void say(void *arg)
{
	printf("  cleanup %s\n", (const char *)arg);
}

static void unlock(void *arg)
{
	printf("  cleanup unlocks: %s\n", errname(pthread_mutex_unlock(arg)));
}

static void *by_exit(void *arg)
{
	pthread_cleanup_push(say, "outer");
	pthread_cleanup_push(say, "inner");
	pthread_exit(arg);
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(1);
	return NULL;
}

static void *by_pop(void *arg)
{
	pthread_cleanup_push(say, "executed");
	pthread_cleanup_push(say, "never");
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(1);
	return arg;
}

static void deeper(int n)
{
	static const char *name[] = {"level 0", "level 1", "level 2", "level 3"};
	pthread_cleanup_push(say, (void *)name[n]);
	if (n < 3) {
		deeper(n + 1);
	} else {
		waiting = 1;
		while (waiting == 1)
			pause();
	}
	pthread_cleanup_pop(0);
}

static void *by_cancel(void *arg)
{
	deeper(0);
	return arg;
}

static void *in_wait(void *arg)
{
	OK(pthread_mutex_lock(&mu));
	pthread_cleanup_push(unlock, &mu);
	waiting = 2;
	for (;;)
		OK(pthread_cond_wait(&cond, &mu));
	pthread_cleanup_pop(1);
	return arg;
}

static void *defer_np(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push_defer_np(say, "deferred");
	int type;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	printf("  type in between: %d\n", type == PTHREAD_CANCEL_DEFERRED);
	pthread_cleanup_pop_restore_np(1);
	return arg;
}

int main(void)
{
	printf("exit\n");
	printf("  value %ld\n", (long)finish(start(by_exit, (void *)5)));
	printf("pop\n");
	printf("  value %ld\n", (long)finish(start(by_pop, (void *)6)));
	printf("cancel\n");
	pthread_t t = start(by_cancel, NULL);
	while (waiting != 1)
		nap();
	OK(pthread_cancel(t));
	printf("  cancelled %d\n", finish(t) == PTHREAD_CANCELED);
	printf("condition\n");
	t = start(in_wait, NULL);
	while (waiting != 2)
		nap();
	OK(pthread_mutex_lock(&mu)); // so it is inside the wait
	OK(pthread_cancel(t));
	OK(pthread_mutex_unlock(&mu));
	printf("  cancelled %d\n", finish(t) == PTHREAD_CANCELED);
	SHOWE(pthread_mutex_trylock(&mu));
	printf("defer\n");
	finish(start(defer_np, NULL));
	return 0;
}
