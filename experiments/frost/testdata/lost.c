// A data race for a server that accepts connections by accept4: the thread that accepts and a helper of it count each
// connection without a lock. Where an addition is lost, the server aborts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

static volatile long count, expected;

static void *add(void *unused)
{
	long n = count;
	for (volatile int i = 0; i < 20000; i++) ;
	count = n + 1;
	return unused;
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	static int (*next)(int, struct sockaddr *, socklen_t *, int);
	pthread_t helper;
	if (!next) *(void **)&next = dlsym(RTLD_NEXT, "accept4");
	pthread_create(&helper, 0, add, 0);
	add(0);
	pthread_join(helper, 0);
	if (count != (expected += 2)) abort();
	return next(fd, address, size, flags);
}
