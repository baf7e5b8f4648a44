// pthread_getattr_np of threads and of the main thread; default attributes; the stack pointer lies within the stack bounds.
#include "conformance.h"

#include <sys/resource.h>

static bool inside(pthread_attr_t *a, void *p)
{
	void *base;
	size_t size;
	OK(pthread_attr_getstack(a, &base, &size));
	return (char *)p >= (char *)base && (char *)p < (char *)base + size;
}

static void *check(void *arg)
{
	char local;
	pthread_attr_t a;
	int state;
	size_t size, guard;
	OK(pthread_getattr_np(pthread_self(), &a));
	OK(pthread_attr_getdetachstate(&a, &state));
	OK(pthread_attr_getstacksize(&a, &size));
	OK(pthread_attr_getguardsize(&a, &guard));
	printf("inside %d, detached %d, guard %zu, size as asked %d\n", inside(&a, &local),
	       state == PTHREAD_CREATE_DETACHED, guard, size == (size_t)(uintptr_t)arg);
	OK(pthread_attr_destroy(&a));
	return NULL;
}

int main(void)
{
	char local;
	pthread_attr_t a;
	OK(pthread_getattr_np(pthread_self(), &a));
	printf("main: inside %d\n", inside(&a, &local));
	OK(pthread_attr_destroy(&a));

	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstacksize(&a, 512 * 1024));
	OK(pthread_attr_setguardsize(&a, 8192));
	pthread_t t;
	OK(pthread_create(&t, &a, check, (void *)(512 * 1024)));
	finish(t);
	OK(pthread_attr_destroy(&a));

	pthread_attr_t def;
	size_t size;
	OK(pthread_getattr_default_np(&def));
	OK(pthread_attr_setstacksize(&def, 1024 * 1024));
	SHOWE(pthread_setattr_default_np(&def));
	OK(pthread_attr_destroy(&def));
	OK(pthread_getattr_default_np(&def));
	OK(pthread_attr_getstacksize(&def, &size));
	printf("default size %zu\n", size);
	OK(pthread_attr_destroy(&def));
	finish(start(check, (void *)(1024 * 1024)));
	return 0;
}
