// ring: a queue of fixed size from one producer to one consumer, without locks
// (Lamport, Specifying concurrent program modules, 1983).
//
// The producer fills a slot and then publishes it by moving the end. In the
// buggy form the end may reach memory before the slot, when stores to different
// addresses may be reordered (PSO): the consumer takes the slot's old contents.
#include "model.h"

enum { SLOTS = 4 };

static long items = 500;
static struct word slots[SLOTS], first, end;
static long stale;

static void put(long item)
{
	long at = load(&end.value);
	while (at - load(&first.value) == SLOTS)
		relax();
	store(&slots[at % SLOTS].value, item);
	order_stores();
	store(&end.value, at + 1);
}

static long take(void)
{
	long at = load(&first.value);
	while (load(&end.value) == at)
		relax();
	long item = load(&slots[at % SLOTS].value);
	store(&first.value, at + 1);
	return item;
}

static void body(long id)
{
	for (long i = 1; i <= items; i++) {
		if (id == 0)
			put(i);
		else if (take() != i)
			stale++;
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('n', "ITEMS", &items, 1, 100000000),
		{0},
	});

	run_threads(2, body);

	assert(stale == 0);
	printf("ring: %ld items, correct\n", items);
	return 0;
}
