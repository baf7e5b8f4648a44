// Counting of synchronization operations, in builds with -DCOUNT: barrier waits,
// mutex acquisitions and condition waits of all threads are counted, and at the
// end of the program a line on standard error has the numbers.
// suite.h includes it after pthread.h, so that all calls after it are counted.
#ifndef COUNT_H
#define COUNT_H

#include <pthread.h>
#include <stdio.h>

static struct {
	long barriers, locks, waits;
} operations_counted;

static inline void count_one(long *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void print_counts(void)
{
	fprintf(stderr, "counted: %ld barriers, %ld locks, %ld waits\n", operations_counted.barriers, operations_counted.locks, operations_counted.waits);
}

// A name in parentheses is the function without the counting.
#define pthread_barrier_wait(b) (count_one(&operations_counted.barriers), (pthread_barrier_wait)(b))
#define pthread_mutex_lock(m) (count_one(&operations_counted.locks), (pthread_mutex_lock)(m))
#define pthread_cond_wait(c, m) (count_one(&operations_counted.waits), (pthread_cond_wait)(c, m))
#define COUNT_WAIT() count_one(&operations_counted.waits)

#endif
