// Quicksort of N numbers by three workers that share a list of ranges. The buggy form looks for work
// and for its end in two critical sections, so that a worker may leave, or all may wait, while no
// list has a range. (qsort_mt of the RADBench and SCTBench collections, after the multithreaded
// qsort of FreeBSD.)
#include "bugs.h"

#define WORKERS 3
#define MOST 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int n, numbers[MOST];
static struct { int from, to; } range[MOST];
static int ranges, busy;
static bool done;

static void add(int from, int to)
{
	if (to - from < 2)
		return;
	LOCK(lock);
	range[ranges].from = from;
	range[ranges++].to = to;
	pthread_cond_signal(&more);
	UNLOCK(lock);
}

static int partition(int from, int to)
{
	int pivot = numbers[to - 1], middle = from;
	for (int i = from; i < to - 1; i++)
		if (numbers[i] < pivot) {
			int t = numbers[i];
			numbers[i] = numbers[middle];
			numbers[middle++] = t;
		}
	numbers[to - 1] = numbers[middle];
	numbers[middle] = pivot;
	return middle;
}

static void *worker(void *unused)
{
	LOCK(lock);
	for (;;) {
		while (!ranges && !done)
			pthread_cond_wait(&more, &lock);
		if (done)
			break;
		int from = range[--ranges].from, to = range[ranges].to;
#ifdef BUGGY
		UNLOCK(lock);
		LOCK(lock); // the range is neither in the list nor a busy worker's
#endif
		busy++;
		UNLOCK(lock);
		int middle = partition(from, to);
		add(from, middle);
		add(middle + 1, to);
		LOCK(lock);
		if (--busy == 0 && !ranges) {
			done = true;
			pthread_cond_broadcast(&more);
		}
	}
	UNLOCK(lock);
	return unused;
}

int main(int argc, char **argv)
{
	n = number(argc, argv, 12, 2, MOST);
	for (int i = 0; i < n; i++)
		numbers[i] = i * 7919 % 1009;
	add(0, n);
	for (int i = 0; i < WORKERS; i++)
		start(worker, NULL);
	join_all();
	for (int i = 1; i < n; i++)
		CHECK(numbers[i - 1] <= numbers[i]);
	return 0;
}
