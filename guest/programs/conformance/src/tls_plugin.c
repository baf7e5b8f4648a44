// dlopen of a library with thread-local variables: each thread its own, threads older and newer than the library, dlclose.
// link: -ldl
// static: no (dlopen)
// plugin: yes
#include "conformance.h"

#ifdef PLUGIN

static _Thread_local int counter = 100;
static _Thread_local char zeroes[3000];
_Thread_local int exported = 7;
static int *reports;

__attribute__((constructor)) static void loaded(void) { printf("plugin loaded\n"); }
__attribute__((destructor)) static void unloaded(void) { printf("plugin unloaded\n"); }

void plugin_reports(int *p) { reports = p; }

int plugin_count(int by)
{
	for (int i = 0; i < (int)sizeof zeroes; i += 100)
		CHECK(zeroes[i] == (counter == 100 ? 0 : 1));
	memset(zeroes, 1, sizeof zeroes);
	counter += by;
	if (reports)
		(*reports)++;
	return counter;
}

void *plugin_address(void) { return &counter; }

#else

#include <dlfcn.h>

static int (*count)(int);
static void *(*address)(void);
static pthread_barrier_t bar;
static void *lib;

static void *get(const char *name)
{
	void *p = dlsym(lib, name);
	CHECK(p != NULL);
	return p;
}

static void *worker(void *arg)
{
	int me = (intptr_t)arg;
	// The library is opened while this thread already runs.
	pthread_barrier_wait(&bar);
	pthread_barrier_wait(&bar);
	CHECK(count(me) == 100 + me);
	for (int i = 0; i < 10; i++) {
		sched_yield();
		CHECK(count(1) == 100 + me + i + 1);
	}
	int *e = dlsym(lib, "exported");
	CHECK(e != NULL && *e == 7);
	*e = me;
	pthread_barrier_wait(&bar);
	CHECK(*e == me);
	return address();
}

static void *late(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)count(5);
}

int main(void)
{
	pthread_t t[5];
	OK(pthread_barrier_init(&bar, NULL, LEN(t) + 1));
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(worker, (void *)(intptr_t)(i + 1));
	pthread_barrier_wait(&bar);
	lib = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		printf("%s\n", dlerror());
	CHECK(lib != NULL);
	count = (int (*)(int))get("plugin_count");
	address = (void *(*)(void))get("plugin_address");
	int calls = 0;
	((void (*)(int *))get("plugin_reports"))(&calls);
	((void (*)(int *))get("plugin_reports"))(NULL);
	pthread_barrier_wait(&bar);
	pthread_barrier_wait(&bar);
	void *where[LEN(t)];
	for (int i = 0; i < LEN(t); i++)
		where[i] = finish(t[i]);
	for (int i = 0; i < LEN(t); i++)
		for (int j = 0; j < i; j++)
			CHECK(where[i] != where[j]);
	printf("main counts %d\n", count(3));
	for (int i = 0; i < 3; i++)
		printf("late thread counts %ld\n", (long)finish(start(late, NULL)));
	CHECK(dlopen("./plugin.so", RTLD_NOW) == lib);
	printf("close %d\n", dlclose(lib));
	printf("close %d\n", dlclose(lib));
	printf("gone %d\n", dlopen("./plugin.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
	// Opened again, everything has its initial value.
	CHECK((lib = dlopen("./plugin.so", RTLD_LAZY)) != NULL);
	count = (int (*)(int))get("plugin_count");
	printf("anew %d\n", count(1));
	printf("in a thread %ld\n", (long)finish(start(late, NULL)));
	return 0;
}

#endif
