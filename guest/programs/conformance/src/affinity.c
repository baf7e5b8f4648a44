// CPU affinity of threads, in attributes and by system call, on the CPUs that the process may use.
#include "conformance.h"

static int first_cpu(const cpu_set_t *s)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, s))
			return i;
	return -1;
}

static void *pinned(void *arg)
{
	int want = (intptr_t)arg;
	cpu_set_t set;
	OK(pthread_getaffinity_np(pthread_self(), sizeof set, &set));
	CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(want, &set));
	for (int i = 0; i < 10; i++) {
		CHECK(sched_getcpu() == want);
		sched_yield();
	}
	unsigned cpu, node;
	CHECK(syscall(SYS_getcpu, &cpu, &node, NULL) == 0);
	CHECK((int)cpu == want);
	return NULL;
}

int main(void)
{
	cpu_set_t all, one, none, again;
	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	CHECK(CPU_COUNT(&all) >= 1);
	CHECK(CPU_ISSET(sched_getcpu(), &all));
	int cpu = first_cpu(&all);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CPU_ZERO(&none);

	pthread_attr_t a;
	pthread_t t;
	OK(pthread_attr_init(&a));
	SHOWE(pthread_attr_setaffinity_np(&a, sizeof one, &one));
	SHOWE(pthread_attr_getaffinity_np(&a, sizeof again, &again));
	printf("same set %d\n", CPU_EQUAL(&one, &again));
	OK(pthread_create(&t, &a, pinned, (void *)(intptr_t)cpu));
	finish(t);
	OK(pthread_attr_destroy(&a));

	SHOWE(pthread_setaffinity_np(pthread_self(), sizeof none, &none));
	SHOWE(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
	// Inherited by threads and children.
	finish(start(pinned, (void *)(intptr_t)cpu));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		pinned((void *)(intptr_t)cpu);
		_exit(0);
	}
	printf("child: %s\n", status_text(wait_for(pid)));
	SHOW(sched_setaffinity(0, sizeof all, &all));
	CHECK(sched_getaffinity(0, sizeof again, &again) == 0);
	printf("restored %d\n", CPU_EQUAL(&all, &again));
	SHOW(syscall(SYS_sched_getaffinity, 0, 1, &again));
	SHOW(sched_getaffinity(999999999, sizeof again, &again));
	return 0;
}
