// The common part of the programs of `heddle calibrate`. Each prints a line
// "NAME NANOSECONDS" for each cost that it measures, and "NAME -" for a cost that cannot be
// measured on this host.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define MAYBE __attribute__((unused))

static double clock_ns(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

// The thread's own time, which other programs on the host do not change much,
// and the time on the wall.
static double own_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
MAYBE static double wall_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static int by_value(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

MAYBE static double median(double *list, int n) {
	qsort(list, n, sizeof *list, by_value);
	return list[n / 2];
}

enum { TRIES = 7 };

// The time of one of the n operations that body does, without the influence of other programs on
// the host: the least of some tries.
static double least_ns(void (*body)(long), long n) {
	double least = 1e18;
	body(n / 16);
	for (int i = 0; i < TRIES; i++) {
		double start = own_ns();
		body(n);
		double took = (own_ns() - start) / n;
		if (took < least) least = took;
	}
	return least;
}

static void report(const char *name, double ns) { printf("%s %.4f\n", name, ns); }

// Two processors that this process may use; 0 if there is only one.
MAYBE static int two_processors(int *first, int *second) {
	cpu_set_t set;
	int found = 0;
	if (sched_getaffinity(0, sizeof set, &set)) return 0;
	for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &set)) *(found++ ? second : first) = i;
	return found == 2;
}

MAYBE static void stay_on(int processor) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof set, &set);
}
