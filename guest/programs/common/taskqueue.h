// Queues of numbered tasks, one for each thread, with stealing: a thread whose
// queue is empty takes a task from another's. When every thread has filled its
// queue before any takes a task, one that finds all queues empty is done.
#ifndef TASKQUEUE_H
#define TASKQUEUE_H

#include "suite.h"

struct task_queue {
	pthread_mutex_t mutex;
	long *tasks;
	long first, end; // those left
};

static struct task_queue task_queues[MAX_THREADS];

static inline void task_queues_init(long threads, long capacity)
{
	for (long i = 0; i < threads; i++) {
		pthread_mutex_init(&task_queues[i].mutex, NULL);
		task_queues[i].tasks = allocate(capacity, sizeof(long));
		task_queues[i].first = task_queues[i].end = 0;
	}
}

static inline void task_queues_destroy(long threads)
{
	for (long i = 0; i < threads; i++) {
		pthread_mutex_destroy(&task_queues[i].mutex);
		free(task_queues[i].tasks);
	}
}

// task_queue_fill gives the thread's queue its share of the tasks 0 to count-1.
static inline void task_queue_fill(long id, long threads, long count)
{
	struct task_queue *q = &task_queues[id];
	pthread_mutex_lock(&q->mutex);
	q->first = q->end = 0;
	for (long task = share_start(count, threads, id); task < share_start(count, threads, id + 1); task++)
		q->tasks[q->end++] = task;
	pthread_mutex_unlock(&q->mutex);
}

// task_take returns a task, or -1 when none is left: the first of the thread's
// own queue, else the last of another's.
static inline long task_take(long id, long threads)
{
	for (long k = 0; k < threads; k++) {
		struct task_queue *q = &task_queues[(id + k) % threads];
		long task = -1;
		pthread_mutex_lock(&q->mutex);
		if (q->first < q->end)
			task = q->tasks[k == 0 ? q->first++ : --q->end];
		pthread_mutex_unlock(&q->mutex);
		if (task >= 0)
			return task;
	}
	return -1;
}

#endif
