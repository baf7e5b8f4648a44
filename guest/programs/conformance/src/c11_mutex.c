// C11 mutexes and conditions: each mutex type, trylock, timedlock, cnd_signal, cnd_broadcast, cnd_timedwait.
#include "conformance.h"

#include <threads.h>

static const char *name(int r)
{
	return r == thrd_success    ? "success"
	       : r == thrd_busy     ? "busy"
	       : r == thrd_timedout ? "timedout"
	       : r == thrd_nomem    ? "nomem"
				    : "error";
}

static mtx_t mu, timed;
static cnd_t cond;
static int counter, stage, released;

static int count(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		mtx_lock(&mu);
		counter++;
		mtx_unlock(&mu);
	}
	return 0;
}

static int try_timed(void *arg)
{
	(void)arg;
	struct timespec t = after(CLOCK_REALTIME, 2 * MSEC);
	printf("trylock: %s\n", name(mtx_trylock(&timed)));
	printf("timedlock: %s\n", name(mtx_timedlock(&timed, &t)));
	return 0;
}

static int waiter(void *arg)
{
	mtx_lock(&mu);
	stage++;
	while (!released)
		cnd_wait(&cond, &mu);
	released += (intptr_t)arg;
	mtx_unlock(&mu);
	return 0;
}

int main(void)
{
	mtx_t rec;
	thrd_t t[5];
	printf("plain: %s\n", name(mtx_init(&mu, mtx_plain)));
	printf("timed: %s\n", name(mtx_init(&timed, mtx_timed)));
	printf("recursive: %s\n", name(mtx_init(&rec, mtx_timed | mtx_recursive)));
	CHECK(mtx_init(&rec, mtx_plain | mtx_recursive) == thrd_success);
	printf("cond: %s\n", name(cnd_init(&cond)));
	for (int i = 0; i < LEN(t); i++)
		CHECK(thrd_create(&t[i], count, NULL) == thrd_success);
	for (int i = 0; i < LEN(t); i++)
		CHECK(thrd_join(t[i], NULL) == thrd_success);
	printf("counter %d\n", counter);
	printf("nested: %s %s\n", name(mtx_lock(&rec)), name(mtx_trylock(&rec)));
	printf("unlock: %s %s\n", name(mtx_unlock(&rec)), name(mtx_unlock(&rec)));

	CHECK(mtx_lock(&timed) == thrd_success);
	CHECK(thrd_create(&t[0], try_timed, NULL) == thrd_success);
	CHECK(thrd_join(t[0], NULL) == thrd_success);

	for (int i = 0; i < LEN(t); i++)
		CHECK(thrd_create(&t[i], waiter, (void *)10) == thrd_success);
	mtx_lock(&mu);
	while (stage < LEN(t)) {
		mtx_unlock(&mu);
		thrd_yield();
		mtx_lock(&mu);
	}
	released = 1;
	printf("signal: %s\n", name(cnd_signal(&cond)));
	printf("broadcast: %s\n", name(cnd_broadcast(&cond)));
	mtx_unlock(&mu);
	for (int i = 0; i < LEN(t); i++)
		CHECK(thrd_join(t[i], NULL) == thrd_success);
	printf("released %d\n", released);

	struct timespec ts = after(CLOCK_REALTIME, MSEC);
	int r;
	mtx_lock(&mu);
	while ((r = cnd_timedwait(&cond, &mu, &ts)) == thrd_success)
		;
	mtx_unlock(&mu);
	printf("timedwait: %s\n", name(r));
	mtx_destroy(&mu);
	cnd_destroy(&cond);
	return 0;
}
