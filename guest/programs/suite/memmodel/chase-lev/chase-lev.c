// chase-lev: a deque whose owner works at the bottom and from whose top others
// steal (Chase and Lev, Dynamic circular work-stealing deque, 2005; Le and
// others, Correct and efficient work-stealing for weak memory models, 2013).
//
// The owner claims the last task by moving the bottom, and then reads
// the top, which thieves move. In the buggy form the store may still be in the
// store buffer when it reads: owner and thief both take a task. When stores to
// different addresses may be reordered (PSO) the bottom may also move before
// the task is stored, and a thief takes the previous contents of the slot.
#include "model.h"

enum { PLACES = 64, BATCH = 3, NONE = -1 };

static long threads = 2, tasks = 600;
static struct word top, bottom, places[PLACES], finished;
static long *done[MAX_THREADS]; // how often each thread did each task

static void push(long task)
{
	long at = load(&bottom.value);
	store(&places[at % PLACES].value, task);
	order_stores();
	store(&bottom.value, at + 1);
}

static bool move_top(long from)
{
	return __atomic_compare_exchange_n(&top.value, &from, from + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// take is for the owner.
static long take(void)
{
	long at = load(&bottom.value) - 1;
	store(&bottom.value, at);
	order_all();
	long first = load(&top.value), task = NONE;
	if (first < at)
		return load(&places[at % PLACES].value);
	if (first == at && move_top(first))
		task = load(&places[at % PLACES].value);
	store(&bottom.value, at + 1);
	return task;
}

// steal is for the others.
static long steal(void)
{
	long first = load(&top.value);
	if (first >= load(&bottom.value))
		return NONE;
	long task = load(&places[first % PLACES].value);
	return move_top(first) ? task : NONE;
}

static void own(void)
{
	for (long next = 0; next < tasks;) {
		for (int i = 0; i < BATCH && next < tasks; i++)
			push(next++);
		for (long task; (task = take()) != NONE;)
			done[0][task]++;
	}
	store(&finished.value, 1);
}

static void body(long id)
{
	if (id == 0) {
		own();
		return;
	}
	while (!load(&finished.value)) {
		long task = steal();
		if (task != NONE)
			done[id][task]++;
		relax();
	}
}

static long times_done(long task)
{
	long times = 0;
	for (long i = 0; i < threads; i++)
		times += done[i][task];
	return times;
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('n', "TASKS", &tasks, 1, 1000000),
		{0},
	});
	for (long i = 0; i < threads; i++)
		done[i] = allocate(tasks, sizeof *done[i]);

	run_threads(threads, body);

	for (long i = 0; i < tasks; i++)
		assert(times_done(i) == 1);
	printf("chase-lev: %ld tasks, correct\n", tasks);
	for (long i = 0; i < threads; i++)
		free(done[i]);
	return 0;
}
