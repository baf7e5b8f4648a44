// message: one thread writes data and then a flag, another waits for the flag and
// reads the data.
//
// In the buggy form the flag may reach memory before the data, when stores to
// different addresses may be reordered (PSO).
#include "model.h"

static long rounds = 300;
static struct word data, flag, answer;
static long stale;

static void await(struct word *w, long value)
{
	while (load(&w->value) != value)
		relax();
}

static void body(long id)
{
	for (long i = 1; i <= rounds; i++) {
		if (id == 0) {
			store(&data.value, i);
			order_stores();
			store(&flag.value, i);
			await(&answer, i);
		} else {
			await(&flag, i);
			if (load(&data.value) != i)
				stale++;
			store(&answer.value, i);
		}
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 100000000),
		{0},
	});

	run_threads(2, body);

	assert(stale == 0);
	printf("message: %ld rounds, correct\n", rounds);
	return 0;
}
