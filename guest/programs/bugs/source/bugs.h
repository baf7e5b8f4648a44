// Shared by the programs of this folder: their argument N, their threads, and how they fail.
#ifndef BUGS_H
#define BUGS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ends the program like a failed assertion.
#define CHECK(condition)                                            \
	do {                                                        \
		if (!(condition)) {                                 \
			fprintf(stderr, "failed: %s\n", #condition); \
			abort();                                    \
		}                                                   \
	} while (0)

#define LOCK(m) pthread_mutex_lock(&(m))
#define UNLOCK(m) pthread_mutex_unlock(&(m))

#define MOST_THREADS 256

static pthread_t threads[MOST_THREADS];
static int thread_count;

static void start(void *(*body)(void *), void *argument)
{
	if (thread_count == MOST_THREADS || pthread_create(&threads[thread_count++], NULL, body, argument)) {
		fprintf(stderr, "too many threads\n");
		exit(2);
	}
}

static void join_all(void)
{
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	thread_count = 0;
}

// The program's argument N, within bounds, or its default.
static inline int number(int argc, char **argv, int fallback, int least, int most)
{
	int n = argc > 1 ? atoi(argv[1]) : fallback;
	if (argc > 2 || n < least || n > most) {
		fprintf(stderr, "usage: %s [N], with N from %d to %d\n", argv[0], least, most);
		exit(2);
	}
	return n;
}

#endif
