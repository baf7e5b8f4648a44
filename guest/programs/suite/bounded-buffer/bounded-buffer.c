// bounded-buffer: producers and consumers that share a ring of slots, with a
// lock and two conditions.
//
// In the buggy form a consumer that has waited for an item does not check again
// that there is one. When another consumer runs between the signal and its
// waking, it takes an item that does not exist.
#include "suite.h"

enum { MAX_SLOTS = 1024 };

static long threads = 4, items = 20, slots = 3;

static long buffer[MAX_SLOTS];
static long first, count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static long *seen; // by item
static long left;  // items to be taken

static void put(long item)
{
	pthread_mutex_lock(&mutex);
	while (count == slots)
		pthread_cond_wait(&not_full, &mutex);
	buffer[(first + count) % slots] = item;
	count++;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&mutex);
}

// take returns an item, or -1 when all have been taken.
static long take(void)
{
	long item = -1;
	pthread_mutex_lock(&mutex);
#ifdef BUGGY
	if (count == 0 && left > 0)
		pthread_cond_wait(&not_empty, &mutex);
#else
	while (count == 0 && left > 0)
		pthread_cond_wait(&not_empty, &mutex);
#endif
	if (left > 0) {
		assert(count > 0);
		item = buffer[first];
		first = (first + 1) % slots;
		count--;
		left--;
		seen[item]++;
		pthread_cond_signal(&not_full);
		if (left == 0)
			pthread_cond_broadcast(&not_empty);
	}
	pthread_mutex_unlock(&mutex);
	return item;
}

// produce puts a share of the items; producers are the even threads.
static void produce(long producer, long producers)
{
	for (long i = share_start(items, producers, producer); i < share_start(items, producers, producer + 1); i++) {
		DELAY(1);
		put(i);
	}
}

static void body(long id)
{
	if (id % 2 == 0)
		produce(id / 2, (threads + 1) / 2);
	else
		while (take() >= 0) {
		}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('n', "ITEMS", &items, 1, 10000000),
		NUMBER('b', "SLOTS", &slots, 1, MAX_SLOTS),
		{0},
	});
	seen = allocate(items, sizeof *seen);
	left = items;

	run_threads(threads, body);

	for (long i = 0; i < items; i++)
		if (seen[i] != 1)
			wrong("item %ld was taken %ld times", i, seen[i]);
	printf("bounded-buffer: %ld items, correct\n", items);
	free(seen);
	return 0;
}
