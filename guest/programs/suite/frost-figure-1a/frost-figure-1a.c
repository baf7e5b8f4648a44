// frost-figure-1a: one thread clears a pointer, another dereferences it.
//
// The program fails in one of the two orders of a single pair of instructions,
// which the fixed form excludes by joining.
#include "suite.h"

struct fifo {
	pthread_mutex_t mutex;
	long count;
};

static struct fifo first_fifo = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct fifo *volatile fifo = &first_fifo;

static void *use(void *unused)
{
	DELAY(10);
	struct fifo *f = fifo; // race: fifo
	pthread_mutex_lock(&f->mutex);
	f->count++;
	pthread_mutex_unlock(&f->mutex);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t user;
	read_arguments(argc, argv, (struct argument[]){{0}});
	start_thread(&user, use, NULL);
#ifndef BUGGY
	pthread_join(user, NULL);
#endif
	fifo = NULL; // race: fifo
#ifdef BUGGY
	pthread_join(user, NULL);
#endif
	printf("frost-figure-1a: %ld use, correct\n", first_fifo.count);
	return 0;
}
