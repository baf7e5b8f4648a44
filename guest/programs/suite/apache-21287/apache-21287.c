// apache-21287: objects of a cache with a count of references, freed with the
// last one.
//
// In the buggy form the count is decremented under a lock, but compared with 0
// outside. Two threads that drop the last two references may both see 0, and
// both free the object.
#include "suite.h"

struct object {
	volatile long references;
	bool live; // not yet freed
	char *data;
};

static long threads = 2, object_count = 20;
static struct object *objects;
static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER; // for references
static pthread_mutex_t heap_mutex = PTHREAD_MUTEX_INITIALIZER;  // for all else

static void clean_up(struct object *o)
{
	pthread_mutex_lock(&heap_mutex);
	assert(o->live);
	o->live = false;
	free(o->data);
	pthread_mutex_unlock(&heap_mutex);
}

static void release(struct object *o)
{
	pthread_mutex_lock(&cache_mutex);
	o->references = o->references - 1; // race: references
#ifdef BUGGY
	pthread_mutex_unlock(&cache_mutex);
	DELAY(1);
	bool last = o->references == 0; // race: references
#else
	bool last = o->references == 0;
	pthread_mutex_unlock(&cache_mutex);
#endif
	if (last)
		clean_up(o);
}

static void body(long id)
{
	(void)id;
	for (long i = 0; i < object_count; i++)
		release(&objects[i]);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "OBJECTS", &object_count, 1, 10000000),
		{0},
	});
	objects = allocate(object_count, sizeof *objects);
	for (long i = 0; i < object_count; i++)
		objects[i] = (struct object){threads, true, allocate(64, 1)};

	run_threads(threads, body);

	for (long i = 0; i < object_count; i++)
		if (objects[i].live)
			wrong("object %ld was not freed", i);
	printf("apache-21287: %ld objects freed, correct\n", object_count);
	free(objects);
	return 0;
}
