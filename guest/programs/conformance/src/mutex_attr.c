// Mutex attributes: every getter and setter of pthread_mutexattr, their defaults and their refusals.
#include "conformance.h"

static void show(const char *when, pthread_mutexattr_t *a)
{
	int type, shared, robust, protocol, ceiling;
	OK(pthread_mutexattr_gettype(a, &type));
	OK(pthread_mutexattr_getpshared(a, &shared));
	OK(pthread_mutexattr_getrobust(a, &robust));
	OK(pthread_mutexattr_getprotocol(a, &protocol));
	OK(pthread_mutexattr_getprioceiling(a, &ceiling));
	printf("%s: type %d shared %d robust %d protocol %d ceiling %d\n", when, type, shared, robust,
	       protocol, ceiling);
}

int main(void)
{
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	show("default", &a);
	SHOWE(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK));
	SHOWE(pthread_mutexattr_settype(&a, 77));
	SHOWE(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	SHOWE(pthread_mutexattr_setpshared(&a, 77));
	SHOWE(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	SHOWE(pthread_mutexattr_setrobust(&a, 77));
	show("changed", &a);
	OK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_STALLED));
	SHOWE(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT));
	SHOWE(pthread_mutexattr_setprotocol(&a, 77));
	SHOWE(pthread_mutexattr_setprioceiling(&a, 10));
	SHOWE(pthread_mutexattr_setprioceiling(&a, 1000));
	show("protect", &a);

	pthread_mutex_t m;
	int ceiling;
	SHOWE(pthread_mutex_init(&m, &a));
	SHOWE(pthread_mutex_getprioceiling(&m, &ceiling));
	printf("ceiling %d\n", ceiling);
	SHOWE(pthread_mutex_destroy(&m));
	SHOWE(pthread_mutexattr_destroy(&a));

	pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
	SHOWE(pthread_mutex_getprioceiling(&plain, &ceiling));
	SHOWE(pthread_mutex_setprioceiling(&plain, 3, &ceiling));
	SHOWE(pthread_mutex_consistent(&plain));
	return 0;
}
