// PI futexes: waiting for a word to be requeued to a lock, FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI.
#include "futex.h"

static atomic_uint word, lock, third;
static atomic_int got, tid, order;
static atomic_bool shown; // the main thread has printed the result of the call that ends the waits

static void asleep(pid_t tid)
{
	char path[64], buf[512];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	do {
		nap();
		CHECK(read_file(path, buf, sizeof buf) > 0);
	} while (strstr(buf, ") S ") == NULL);
}

static void *waiter(void *arg)
{
	tid = gettid();
	long r = futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, NULL, &lock, 0);
	int e = errno;
	while (!shown)
		nap();
	int n = ++order;
	printf("waiter %ld is number %d: %s, owner %d\n", (long)arg, n, r == 0 ? "ok" : errname(e),
	       (lock & FUTEX_TID_MASK) == (unsigned)gettid());
	got++;
	if (r == 0)
		CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return NULL;
}

static pthread_t waiting(void *(*f)(void *), long arg)
{
	tid = 0;
	shown = false;
	pthread_t t = start(f, (void *)arg);
	while (tid == 0)
		nap();
	asleep(tid);
	return t;
}

static long requeue(int wake, long n) { return futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, wake, (void *)n, &lock, 0); }

static void *timed(void *arg)
{
	struct timespec t = after(CLOCK_MONOTONIC, 2 * MSEC);
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, &t, &lock, 0));
	t = after(CLOCK_REALTIME, 2 * MSEC);
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &t, &lock, 0));
	return arg;
}

static void *timed_at_the_lock(void *arg)
{
	struct timespec t = after(CLOCK_MONOTONIC, (long)arg);
	tid = gettid();
	CHECK(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, &t, &lock, 0) == -1);
	CHECK(errno == ETIMEDOUT);
	return arg;
}

static void handler(int sig)
{
	(void)sig;
	got++;
}

int main(void)
{
	on_signal(SIGUSR1, handler, 0);
	// Refused.
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 1, NULL, &lock, 0));
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, NULL, &word, 0));
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, (void *)8, &lock, 0));
	struct timespec past = {0};
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, &past, NULL, 0)); // a private word need not be mapped
	SHOW(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, NULL, (atomic_uint *)1, 0));
	SHOW(requeue(1, 5));
	SHOW(requeue(2, 5));
	SHOW(requeue(0, 5));
	SHOW(requeue(1, -1));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &lock, 7));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &word, 0));

	// The lock is free: the first waiter gets it, the others wait for it.
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = waiting(waiter, i);
	SHOW(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_REQUEUE_PRIVATE, 1, (void *)1, &lock, 0));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &third, 0));
	SHOW(requeue(1, 100));
	shown = true;
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	SHOW(got);
	CHECK(lock == 0);

	// The lock is held: all requeued threads wait for it, and the rest for the word.
	SHOW(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	for (int i = 0; i < LEN(t); i++)
		t[i] = waiting(waiter, 10 + i);
	SHOW(requeue(1, 1));
	SHOW(got);
	printf("waiters %d\n", (lock & FUTEX_WAITERS) != 0);
	SHOW(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	shown = true;
	finish(t[0]);
	finish(t[1]);
	SHOW(got);
	shown = false;
	SHOW(requeue(1, 0)); // wakes one
	shown = true;
	finish(t[2]);
	SHOW(got);
	shown = false;
	SHOW(requeue(1, 0));
	shown = true;
	finish(t[3]);

	// Time-outs, before and after being requeued.
	SHOW(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	finish(start(timed, NULL));
	pthread_t x;
	long moved = 0;
	for (long ns = 2 * MSEC; moved == 0; ns *= 2) { // on a slow host it times out before it is requeued
		tid = 0;
		x = start(timed_at_the_lock, (void *)ns);
		while (tid == 0)
			nap();
		moved = requeue(1, 0);
		finish(x);
	}
	SHOW(moved);
	SHOW(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));

	// Signals: before being requeued the call is made anew, afterwards it fails.
	SHOW(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	got = 0;
	x = waiting(waiter, 20);
	OK(pthread_kill(x, SIGUSR1));
	while (got == 0)
		nap();
	asleep(tid);
	SHOW(requeue(1, 0));
	shown = true;
	OK(pthread_kill(x, SIGUSR1));
	finish(x);
	SHOW(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	return 0;
}
