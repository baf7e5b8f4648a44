// A driver is stopped while N threads use it: the stop waits until no use is pending, and a use must
// not begin after it. The buggy form checks whether the driver is being stopped before it counts
// itself as pending. (The Bluetooth driver of Qadeer and Wu, KISS, PLDI 2004.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static int pending = 1; // the driver's own
static bool stopping, stopped;

static void leave(void)
{
	LOCK(lock);
	if (--pending == 0)
		pthread_cond_broadcast(&idle);
	UNLOCK(lock);
}

static bool enter(void)
{
	LOCK(lock);
#ifdef BUGGY
	bool refused = stopping;
	UNLOCK(lock);
	if (refused)
		return false;
	LOCK(lock);
	pending++;
#else
	pending++;
	if (stopping) {
		pending--;
		if (pending == 0)
			pthread_cond_broadcast(&idle);
		UNLOCK(lock);
		return false;
	}
#endif
	UNLOCK(lock);
	return true;
}

static void *use(void *unused)
{
	if (enter()) {
		LOCK(lock);
		CHECK(!stopped);
		UNLOCK(lock);
		leave();
	}
	return unused;
}

static void *stop(void *unused)
{
	LOCK(lock);
	stopping = true;
	UNLOCK(lock);
	leave();
	LOCK(lock);
	while (pending > 0)
		pthread_cond_wait(&idle, &lock);
	stopped = true;
	UNLOCK(lock);
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 1, 1, 200);
	start(stop, NULL);
	for (int i = 0; i < n; i++)
		start(use, NULL);
	join_all();
	return 0;
}
