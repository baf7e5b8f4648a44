// A buffer of N slots used in a circle by one sender and one receiver. The buggy form marks a slot
// as used before it writes the value. (circular_buffer of SCTBench.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int slots, used;
static int slot[MOST_THREADS];

static void *sender(void *unused)
{
	for (int i = 0; i < 2 * slots; i++) {
		LOCK(lock);
		while (used == slots)
			pthread_cond_wait(&changed, &lock);
#ifdef BUGGY
		used++;
		UNLOCK(lock);
		LOCK(lock);
		slot[i % slots] = i + 1;
#else
		slot[i % slots] = i + 1;
		used++;
#endif
		pthread_cond_signal(&changed);
		UNLOCK(lock);
	}
	return unused;
}

static void *receiver(void *unused)
{
	for (int i = 0; i < 2 * slots; i++) {
		LOCK(lock);
		while (used == 0)
			pthread_cond_wait(&changed, &lock);
		CHECK(slot[i % slots] == i + 1);
		slot[i % slots] = 0;
		used--;
		pthread_cond_signal(&changed);
		UNLOCK(lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	slots = number(argc, argv, 4, 1, 200);
	start(sender, NULL);
	start(receiver, NULL);
	join_all();
	return 0;
}
