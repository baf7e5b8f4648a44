// seqlock: a pair of words that one thread writes and the others read without
// stopping it, with a number that is odd while the pair is being written.
//
// A reader that finds the same even number before and after has read both words
// of one write. In the buggy form the number may reach memory before the words
// that were stored before it, when stores to different addresses may be
// reordered (PSO).
#include "model.h"

static long threads = 2, rounds = 500;
static struct word number, first, second, done;
static long torn[MAX_THREADS], taken[MAX_THREADS];

static void write_pair(long value)
{
	store(&number.value, load(&number.value) + 1);
	order_stores();
	store(&first.value, value);
	store(&second.value, -value);
	order_stores();
	store(&number.value, load(&number.value) + 1);
}

static void read_pair(long id)
{
	long before = load(&number.value);
	long a = load(&first.value), b = load(&second.value);
	if (before % 2 == 1 || load(&number.value) != before)
		return; // to be read again
	taken[id]++;
	if (a != -b || a != before / 2)
		torn[id]++;
}

static void body(long id)
{
	if (id == 0) {
		for (long i = 1; i <= rounds; i++)
			write_pair(i);
		store(&done.value, 1);
		return;
	}
	while (!load(&done.value)) {
		read_pair(id);
		relax();
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('r', "ROUNDS", &rounds, 1, 100000000),
		{0},
	});

	run_threads(threads, body);

	for (long i = 0; i < threads; i++)
		assert(torn[i] == 0);
	printf("seqlock: %ld writes, correct\n", rounds);
	return 0;
}
