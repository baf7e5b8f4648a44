// Queues of numbered tasks, one for each thread, with stealing: a thread whose
// queue is empty takes a task from another's. When every thread has filled its
// queue before any takes a task, one that finds all queues empty is done.
#ifndef TASKQUEUE_H
#define TASKQUEUE_H

#include "suite.h"

struct task_queue {
	pthread_mutex_t mutex;
	long *tasks;
	long first, end; // tasks left
	long victim;     // where the thread steals first
};

static struct task_queue task_queues[MAX_THREADS];

static inline void task_queues_init(long threads, long capacity)
{
	for (long i = 0; i < threads; i++) {
		pthread_mutex_init(&task_queues[i].mutex, NULL);
		task_queues[i].tasks = allocate(capacity, sizeof(long));
		task_queues[i].first = task_queues[i].end = 0;
		task_queues[i].victim = i + 1;
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

// task_take_from returns a task of a queue, the first one for its owner and the
// last one for a thief, or -1.
static inline long task_take_from(struct task_queue *q, bool owner)
{
	long task = -1;
	pthread_mutex_lock(&q->mutex);
	if (q->first < q->end)
		task = q->tasks[owner ? q->first++ : --q->end];
	pthread_mutex_unlock(&q->mutex);
	return task;
}

// task_take returns a task, or -1 when none is left: one of the thread's own
// queue, else of another's, that from which it took the last one before others.
static inline long task_take(long id, long threads)
{
	struct task_queue *own = &task_queues[id];
	long task = task_take_from(own, true);
	for (long k = 1; k < threads && task < 0; k++) {
		if (own->victim % threads == id)
			own->victim++;
		task = task_take_from(&task_queues[own->victim % threads], false);
		if (task < 0)
			own->victim++;
	}
	return task;
}

#endif
