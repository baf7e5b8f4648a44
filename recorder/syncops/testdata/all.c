// Every operation of POSIX threads and semaphores that glibc has, each by one or
// more calls, with results that no interleaving changes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "selflog.h"

static struct timespec at(clockid_t clock, long ms)
{
	struct timespec t;
	clock_gettime(clock, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void mutexes(void)
{
	static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_t m, e;
	pthread_mutexattr_t a;
	struct timespec t = at(CLOCK_REALTIME, 5), u = at(CLOCK_MONOTONIC, 5);
	CALL("mutex_init", pthread_mutex_init(&m, NULL));
	CALL("mutex_lock", pthread_mutex_lock(&m));
	CALL("mutex_trylock", pthread_mutex_trylock(&m));
	CALL("mutex_timedlock", pthread_mutex_timedlock(&m, &t));
	CALL("mutex_clocklock", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &u));
	CALL("mutex_unlock", pthread_mutex_unlock(&m));
	CALL("mutex_destroy", pthread_mutex_destroy(&m));
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	CALL("mutex_init", pthread_mutex_init(&e, &a));
	CALL("mutex_unlock", pthread_mutex_unlock(&e));
	CALL("mutex_lock", pthread_mutex_lock(&e));
	CALL("mutex_lock", pthread_mutex_lock(&e));
	CALL("mutex_unlock", pthread_mutex_unlock(&e));
	CALL("mutex_destroy", pthread_mutex_destroy(&e));
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	CALL("mutex_init", pthread_mutex_init(&e, &a));
	CALL("mutex_lock", pthread_mutex_lock(&e));
	CALL("mutex_lock", pthread_mutex_lock(&e));
	CALL("mutex_unlock", pthread_mutex_unlock(&e));
	CALL("mutex_unlock", pthread_mutex_unlock(&e));
	CALL("mutex_destroy", pthread_mutex_destroy(&e));
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	CALL("mutex_init", pthread_mutex_init(&e, &a));
	CALL("mutex_lock", pthread_mutex_lock(&e));
	CALL("mutex_consistent", pthread_mutex_consistent(&e));
	CALL("mutex_unlock", pthread_mutex_unlock(&e));
	CALL("mutex_lock", pthread_mutex_lock(&global));
	CALL("mutex_unlock", pthread_mutex_unlock(&global));
}

static void conditions(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c;
	struct timespec t = at(CLOCK_REALTIME, 5), u = at(CLOCK_MONOTONIC, 5), bad = {0, -1};
	CALL("cond_init", pthread_cond_init(&c, NULL));
	CALL("mutex_lock", pthread_mutex_lock(&m));
	CALL("cond_timedwait", pthread_cond_timedwait(&c, &m, &t));
	CALL("cond_timedwait", pthread_cond_timedwait(&c, &m, &bad));
	CALL("cond_clockwait", pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &u));
	CALL("cond_signal", pthread_cond_signal(&c));
	CALL("cond_broadcast", pthread_cond_broadcast(&c));
	CALL("mutex_unlock", pthread_mutex_unlock(&m));
	CALL("cond_destroy", pthread_cond_destroy(&c));
}

static void rwlocks(void)
{
	pthread_rwlock_t l;
	struct timespec t = at(CLOCK_REALTIME, 5), u = at(CLOCK_MONOTONIC, 5);
	CALL("rwlock_init", pthread_rwlock_init(&l, NULL));
	CALL("rwlock_rdlock", pthread_rwlock_rdlock(&l));
	CALL("rwlock_tryrdlock", pthread_rwlock_tryrdlock(&l));
	CALL("rwlock_timedrdlock", pthread_rwlock_timedrdlock(&l, &t));
	CALL("rwlock_clockrdlock", pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &u));
	CALL("rwlock_trywrlock", pthread_rwlock_trywrlock(&l));
	CALL("rwlock_timedwrlock", pthread_rwlock_timedwrlock(&l, &t));
	CALL("rwlock_clockwrlock", pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &u));
	for (int i = 0; i < 4; i++)
		CALL("rwlock_unlock", pthread_rwlock_unlock(&l));
	CALL("rwlock_wrlock", pthread_rwlock_wrlock(&l));
	CALL("rwlock_unlock", pthread_rwlock_unlock(&l));
	CALL("rwlock_destroy", pthread_rwlock_destroy(&l));
}

static void spins(void)
{
	pthread_spinlock_t s;
	CALL("spin_init", pthread_spin_init(&s, 0));
	CALL("spin_lock", pthread_spin_lock(&s));
	CALL("spin_trylock", pthread_spin_trylock(&s));
	CALL("spin_unlock", pthread_spin_unlock(&s));
	CALL("spin_trylock", pthread_spin_trylock(&s));
	CALL("spin_unlock", pthread_spin_unlock(&s));
	CALL("spin_destroy", pthread_spin_destroy(&s));
	CALL("spin_init", pthread_spin_init(&s, 0));
	CALL("spin_destroy", pthread_spin_destroy(&s));
}

static void semaphores(void)
{
	sem_t s, *named;
	struct timespec t = at(CLOCK_REALTIME, 5), u = at(CLOCK_MONOTONIC, 5);
	CALL("sem_init", sem_init(&s, 0, 1));
	CALL("sem_wait", sem_wait(&s));
	CALL("sem_trywait", sem_trywait(&s));
	CALL("sem_timedwait", sem_timedwait(&s, &t));
	CALL("sem_clockwait", sem_clockwait(&s, CLOCK_MONOTONIC, &u));
	CALL("sem_post", sem_post(&s));
	CALL("sem_timedwait", sem_timedwait(&s, &t));
	CALL("sem_destroy", sem_destroy(&s));
	named = sem_open("/heddle-syncops", O_CREAT, 0600, 0);
	say("sem_open");
	CALL("sem_post", sem_post(named));
	CALL("sem_wait", sem_wait(named));
	CALL("sem_close", sem_close(named));
	CALL("sem_unlink", sem_unlink("/heddle-syncops"));
}

static pthread_mutex_t within = PTHREAD_MUTEX_INITIALIZER;

static void initialise(void)
{
	CALL("mutex_lock", pthread_mutex_lock(&within));
	CALL("mutex_unlock", pthread_mutex_unlock(&within));
}

static void onces(void)
{
	static pthread_once_t o = PTHREAD_ONCE_INIT;
	static once_flag f = ONCE_FLAG_INIT;
	CALL("once", pthread_once(&o, initialise));
	CALL("once", pthread_once(&o, initialise));
	call_once(&f, initialise);
	say("call_once");
	call_once(&f, initialise);
	say("call_once");
}

static void c11(void)
{
	mtx_t m;
	cnd_t c;
	tss_t k;
	struct timespec t = at(CLOCK_REALTIME, 5);
	CALL("mtx_init", mtx_init(&m, mtx_timed));
	CALL("mtx_lock", mtx_lock(&m));
	CALL("mtx_trylock", mtx_trylock(&m));
	CALL("mtx_timedlock", mtx_timedlock(&m, &t));
	CALL("cnd_init", cnd_init(&c));
	CALL("cnd_timedwait", cnd_timedwait(&c, &m, &t));
	CALL("cnd_signal", cnd_signal(&c));
	CALL("cnd_broadcast", cnd_broadcast(&c));
	cnd_destroy(&c);
	say("cnd_destroy");
	CALL("mtx_unlock", mtx_unlock(&m));
	mtx_destroy(&m);
	say("mtx_destroy");
	CALL("tss_create", tss_create(&k, NULL));
	tss_delete(k);
	say("tss_delete");
}

static pthread_barrier_t barrier;
static pthread_key_t keys[3];

static void last(void *value)
{
	say("key_destructor %ld", (long)value);
	CALL("mutex_lock", pthread_mutex_lock(&within));
	CALL("mutex_unlock", pthread_mutex_unlock(&within));
	if ((long)value > 100)
		pthread_setspecific(keys[1], (void *)((long)value - 100));
}

static void *worker(void *number)
{
	self = (int)(long)number;
	say("barrier_wait");
	pthread_barrier_wait(&barrier);
	mutexes();
	rwlocks();
	pthread_setspecific(keys[2], (void *)1L);
	pthread_setspecific(keys[0], (void *)202L);
	if (self == 2) {
		say("pthread_exit");
		pthread_exit(number);
	}
	return number;
}

static int c11_worker(void *number)
{
	self = (int)(long)number;
	if (self == 6) {
		say("thrd_exit");
		thrd_exit(6);
	}
	c11();
	return 0;
}

static void *canceled(void *number)
{
	self = (int)(long)number;
	CALL("mutex_lock", pthread_mutex_lock(&within));
	say("testcancel");
	pthread_testcancel();
	CALL("mutex_unlock", pthread_mutex_unlock(&within));
	for (;;)
		pause();
	return NULL;
}

static void *nothing(void *number) { return number; }

int main(void)
{
	pthread_t t[8];
	thrd_t c[2];
	struct timespec soon = at(CLOCK_REALTIME, 100000), later = at(CLOCK_MONOTONIC, 100000);
	mutexes();
	conditions();
	rwlocks();
	spins();
	semaphores();
	onces();
	c11();
	for (int i = 0; i < 3; i++)
		CALL("key_create", pthread_key_create(&keys[i], last));
	CALL("barrier_init", pthread_barrier_init(&barrier, NULL, 3));
	for (long i = 1; i <= 3; i++)
		CALL("create", pthread_create(&t[i], NULL, worker, (void *)i));
	CALL("join", pthread_join(t[1], NULL));
	CALL("timedjoin", pthread_timedjoin_np(t[2], NULL, &soon));
	CALL("clockjoin", pthread_clockjoin_np(t[3], NULL, CLOCK_MONOTONIC, &later));
	CALL("barrier_destroy", pthread_barrier_destroy(&barrier));
	for (int i = 0; i < 3; i++)
		CALL("key_delete", pthread_key_delete(keys[i]));
	CALL("create", pthread_create(&t[4], NULL, canceled, (void *)4L));
	usleep(20000);
	CALL("tryjoin", pthread_tryjoin_np(t[4], NULL));
	CALL("cancel", pthread_cancel(t[4]));
	CALL("join", pthread_join(t[4], NULL));
	for (long i = 0; i < 2; i++)
		CALL("thrd_create", thrd_create(&c[i], c11_worker, (void *)(i + 5)));
	CALL("thrd_join", thrd_join(c[0], NULL));
	CALL("thrd_join", thrd_join(c[1], NULL));
	CALL("create", pthread_create(&t[7], NULL, nothing, NULL));
	CALL("detach", pthread_detach(t[7]));
	usleep(20000);
	tell();
	return 0;
}
