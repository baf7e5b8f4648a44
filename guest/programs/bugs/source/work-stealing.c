// The owner of a queue of N tasks puts and takes them at one end, a thief steals at the other. Each
// task must be executed once. The buggy form takes the last task without the lock when the queue
// is longer than one. (The work-stealing queue of the CHESS benchmarks, after Leijen's WSQ and
// Frigo, Leiserson and Randall's THE protocol, PLDI 1998.) Compiled with -DINTERLOCKED, head and
// tail change by atomic instructions.
#include "bugs.h"

#ifdef INTERLOCKED
#define STORE(at, value) __atomic_store_n(&(at), value, __ATOMIC_SEQ_CST)
#define LOAD(at) __atomic_load_n(&(at), __ATOMIC_SEQ_CST)
#else
#define STORE(at, value) (*(volatile int *)&(at) = (value))
#define LOAD(at) (*(volatile int *)&(at))
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int tasks;
static int head, tail; // the queue has the tasks from head up to tail
static int executed[MOST_THREADS];

static void execute(int task)
{
	int times = __atomic_add_fetch(&executed[task], 1, __ATOMIC_SEQ_CST);
	CHECK(times == 1);
}

// take removes the newest task; it returns -1 if the queue is empty.
static int take(void)
{
#ifdef BUGGY
	int t = LOAD(tail) - 1;
	if (LOAD(head) < t) { // more than one: no thief can steal this one
		STORE(tail, t);
		return t;
	}
#endif
	LOCK(lock);
	int task = -1, last = LOAD(tail) - 1;
	if (LOAD(head) <= last) {
		STORE(tail, last);
		task = last;
	}
	UNLOCK(lock);
	return task;
}

// steal removes the oldest task; it returns -1 if the queue is empty.
static int steal(void)
{
	LOCK(lock);
	int task = -1, h = LOAD(head);
	if (h < LOAD(tail)) {
		STORE(head, h + 1);
		task = h;
	}
	UNLOCK(lock);
	return task;
}

static void *thief(void *unused)
{
	for (int i = 0; i < tasks; i++) {
		int task = steal();
		if (task >= 0)
			execute(task);
	}
	return unused;
}

int main(int argc, char **argv)
{
	tasks = number(argc, argv, 4, 2, 200);
	STORE(tail, tasks);
	start(thief, NULL);
	for (int task; (task = take()) >= 0;)
		execute(task);
	join_all();
	for (int i = 0; i < tasks; i++)
		CHECK(executed[i] == 1);
	return 0;
}
