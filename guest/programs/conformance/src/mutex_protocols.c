// Mutex protocols: priority inheritance and protection, their ceilings, with kinds, robustness and condition variables.
// root: yes
#include "conformance.h"

static void init(pthread_mutex_t *m, int protocol, int kind, int robust)
{
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	OK(pthread_mutexattr_setprotocol(&a, protocol));
	OK(pthread_mutexattr_settype(&a, kind));
	OK(pthread_mutexattr_setrobust(&a, robust));
	OK(pthread_mutex_init(m, &a));
}

static int priority(void)
{
	struct sched_param p;
	CHECK(sched_getparam(0, &p) == 0);
	return p.sched_priority * 10 + sched_getscheduler(0);
}

static pthread_mutex_t mu, mu2;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready, counter;
static atomic_int held;

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; i < 300; i++) {
		OK(pthread_mutex_lock(&mu));
		int c = counter;
		if (i % 50 == 0)
			sched_yield();
		counter = c + 1;
		OK(pthread_mutex_unlock(&mu));
	}
	return NULL;
}

static void *dies(void *arg)
{
	OK(pthread_mutex_lock(&mu));
	held = 1;
	if (arg != NULL)
		nap();
	return arg;
}

static void *waits(void *arg)
{
	OK(pthread_mutex_lock(&mu));
	while (!ready)
		OK(pthread_cond_wait(&cond, &mu));
	counter++;
	OK(pthread_mutex_unlock(&mu));
	return arg;
}

static void inherit(void)
{
	init(&mu, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_trylock(&mu));
	SHOWE(pthread_mutex_unlock(&mu));
	SHOWE(pthread_mutex_destroy(&mu));
	init(&mu, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
	for (int i = 0; i < 3; i++)
		SHOWE(pthread_mutex_lock(&mu));
	for (int i = 0; i < 4; i++)
		SHOWE(pthread_mutex_unlock(&mu));
	init(&mu, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
	pthread_t t[5];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(count, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("counter %d\n", counter);
	counter = 0;
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(waits, NULL);
	nap();
	OK(pthread_mutex_lock(&mu));
	ready = 1;
	OK(pthread_cond_broadcast(&cond));
	OK(pthread_mutex_unlock(&mu));
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("woken %d\n", counter);
	SHOWE(pthread_mutex_destroy(&mu));
	for (int waiting = 0; waiting < 2; waiting++) {
		init(&mu, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
		held = 0;
		pthread_t d = start(dies, waiting ? &mu : NULL);
		while (!held)
			sched_yield();
		if (!waiting)
			finish(d);
		SHOWE(pthread_mutex_lock(&mu));
		SHOWE(pthread_mutex_consistent(&mu));
		SHOWE(pthread_mutex_unlock(&mu));
		SHOWE(pthread_mutex_lock(&mu));
		SHOWE(pthread_mutex_unlock(&mu));
		if (waiting)
			finish(d);
		held = 0;
		finish(start(dies, NULL));
		SHOWE(pthread_mutex_lock(&mu));
		SHOWE(pthread_mutex_unlock(&mu)); // without making it consistent
		SHOWE(pthread_mutex_lock(&mu));
	}
}

static void protect(void)
{
	pthread_mutexattr_t a;
	int n;
	OK(pthread_mutexattr_init(&a));
	SHOWE(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT));
	SHOWE(pthread_mutexattr_getprotocol(&a, &n));
	printf("protocol %d\n", n);
	SHOWE(pthread_mutexattr_setprioceiling(&a, 20));
	SHOWE(pthread_mutexattr_setprioceiling(&a, 100));
	SHOWE(pthread_mutexattr_getprioceiling(&a, &n));
	printf("ceiling %d\n", n);
	OK(pthread_mutex_init(&mu, &a));
	OK(pthread_mutexattr_setprioceiling(&a, 30));
	OK(pthread_mutex_init(&mu2, &a));
	SHOWE(pthread_mutex_lock(&mu));
	printf("with one: %d\n", priority());
	SHOWE(pthread_mutex_lock(&mu2));
	printf("with both: %d\n", priority());
	SHOWE(pthread_mutex_unlock(&mu2));
	printf("with one: %d\n", priority());
	SHOWE(pthread_mutex_unlock(&mu));
	printf("with none: %d\n", priority());
	CHECK(sched_setscheduler(0, SCHED_RR, &(struct sched_param){10}) == 0);
	SHOWE(pthread_mutex_lock(&mu));
	printf("with one: %d\n", priority());
	SHOWE(pthread_setschedparam(pthread_self(), SCHED_RR, &(struct sched_param){25}));
	printf("higher than the ceiling: %d\n", priority());
	SHOWE(pthread_mutex_unlock(&mu));
	printf("with none: %d\n", priority());
	SHOWE(pthread_mutex_lock(&mu));
	SHOWE(pthread_mutex_setprioceiling(&mu, 40, &n));
	printf("the old ceiling %d\n", n);
	SHOWE(pthread_mutex_getprioceiling(&mu, &n));
	printf("ceiling %d\n", n);
	SHOWE(pthread_mutex_lock(&mu));
	printf("with one: %d\n", priority());
	SHOWE(pthread_mutex_unlock(&mu));
	CHECK(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}) == 0);
	counter = 0;
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(count, NULL);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	printf("counter %d\n", counter);
	SHOWE(pthread_mutex_destroy(&mu));
	SHOWE(pthread_mutex_destroy(&mu2));
}

int main(void)
{
	inherit();
	protect();
	return 0;
}
