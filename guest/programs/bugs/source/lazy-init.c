// N threads use an object that the first one makes. The buggy form checks without the lock, and
// publishes the object before it is complete: double-checked locking. (lazy01 of SCTBench; Bacon
// and others, The "Double-checked locking is broken" declaration.)
#include "bugs.h"

struct object {
	int size, *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *volatile shared;

static struct object *get(void)
{
#ifdef BUGGY
	if (shared)
		return shared;
#endif
	LOCK(lock);
	if (!shared) {
		struct object *o = calloc(1, sizeof *o);
#ifdef BUGGY
		shared = o;
#endif
		o->data = calloc(4, sizeof *o->data);
		*(volatile int *)&o->size = 4;
		shared = o;
	}
	UNLOCK(lock);
	return shared;
}

static void *user(void *unused)
{
	struct object *o = get();
	CHECK(*(volatile int *)&o->size == 4);
	o->data[0] = 1;
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 3, 2, 200);
	for (int i = 0; i < n; i++)
		start(user, NULL);
	join_all();
	free(shared->data);
	free(shared);
	return 0;
}
