// RLIMIT_AS and RLIMIT_DATA: mappings, brk, malloc and thread stacks are refused with ENOMEM or EAGAIN, and recover.
#include "conformance.h"

static void *nothing(void *arg)
{
	return arg;
}

static long map(size_t n, int prot)
{
	void *p = mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -1;
	CHECK(munmap(p, n) == 0);
	return 0;
}

int main(void)
{
	struct rlimit old, lim;
	pthread_t t;
	CHECK(getrlimit(RLIMIT_AS, &old) == 0);
	lim = old;
	lim.rlim_cur = 300 << 20;
	SHOW(map(1ul << 30, PROT_READ | PROT_WRITE));
	SHOW(setrlimit(RLIMIT_AS, &lim));
	SHOW(map(1ul << 30, PROT_READ | PROT_WRITE));
	SHOW(map(1ul << 30, PROT_NONE));
	SHOW(map(100 << 20, PROT_READ | PROT_WRITE));
	void *volatile m = malloc(1ul << 30);
	printf("malloc of 1 GB: %s\n", m ? "ok" : "NULL");
	SHOW(sbrk(1l << 30) == (void *)-1 ? -1 : 0);
	pthread_attr_t a;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstacksize(&a, 1ul << 30));
	SHOWE(pthread_create(&t, &a, nothing, NULL));
	SHOW(setrlimit(RLIMIT_AS, &old));
	SHOW(map(1ul << 30, PROT_READ | PROT_WRITE));
	SHOWE(pthread_create(&t, &a, nothing, NULL));
	OK(pthread_join(t, NULL));

	CHECK(getrlimit(RLIMIT_DATA, &old) == 0);
	lim = old;
	lim.rlim_cur = 100 << 20;
	SHOW(setrlimit(RLIMIT_DATA, &lim));
	SHOW(sbrk(200 << 20) == (void *)-1 ? -1 : 0);
	SHOW(setrlimit(RLIMIT_DATA, &old));
	lim.rlim_cur = 10;
	lim.rlim_max = 5;
	SHOW(setrlimit(RLIMIT_DATA, &lim));
	SHOW(setrlimit(77, &lim));
	SHOW(getrlimit(77, &lim));
	return 0;
}
