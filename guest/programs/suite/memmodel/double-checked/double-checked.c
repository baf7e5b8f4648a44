// double-checked: objects that are made when they are first asked for, by one
// thread, and are then read without the lock.
//
// In the buggy form the pointer may reach memory before the object's contents,
// when stores to different addresses may be reordered (PSO): a thread that
// finds the pointer set, and so does not take the lock, reads an empty object.
#include "model.h"

struct object {
	_Alignas(64) long number, square;
};

static long threads = 2, rounds = 500;
static struct object *objects;
static long *instances; // index of the object plus 1, or 0
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long empty[MAX_THREADS]; // objects read before they were made

static void make(long i)
{
	pthread_mutex_lock(&mutex);
	if (load(&instances[i]) == 0) {
		store(&objects[i].number, i + 1);
		store(&objects[i].square, (i + 1) * (i + 1));
		order_stores();
		store(&instances[i], i + 1);
	}
	pthread_mutex_unlock(&mutex);
}

static const struct object *get(long i)
{
	if (load(&instances[i]) == 0)
		make(i);
	return &objects[load(&instances[i]) - 1];
}

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		const struct object *o = get(i);
		long number = load(&o->number), square = load(&o->square);
		if (number != i + 1 || square != number * number)
			empty[id]++;
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('r', "ROUNDS", &rounds, 1, 1000000),
		{0},
	});
	if (posix_memalign((void **)&objects, 64, rounds * sizeof *objects) != 0)
		wrong("no memory for %ld objects", rounds);
	memset(objects, 0, rounds * sizeof *objects);
	instances = allocate(rounds, sizeof *instances);

	run_threads(threads, body);

	for (long i = 0; i < threads; i++)
		assert(empty[i] == 0);
	printf("double-checked: %ld objects, correct\n", rounds);
	free(objects);
	free(instances);
	return 0;
}
