// dekker: mutual exclusion of two threads by loads and stores alone, after
// Dekker (Dijkstra, Cooperating sequential processes, 1965).
//
// A thread says that it wants to enter and then reads whether the other does. In
// the buggy form the store of the first may still be in the store buffer when the
// load of the second is done: both threads find that the other does not want to
// enter, both enter, and an addition is lost.
#include "model.h"

static long rounds = 200;
static struct word wants[2], turn, counter;

static void enter(long me)
{
	store(&wants[me].value, 1);
	order_all();
	while (load(&wants[1 - me].value)) {
		if (load(&turn.value) != me) {
			store(&wants[me].value, 0);
			while (load(&turn.value) != me)
				relax();
			store(&wants[me].value, 1);
			order_all();
		}
		relax();
	}
}

static void leave(long me)
{
	order_stores();
	store(&turn.value, 1 - me);
	store(&wants[me].value, 0);
}

static void body(long me)
{
	for (long i = 0; i < rounds; i++) {
		enter(me);
		store(&counter.value, load(&counter.value) + 1);
		leave(me);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 100000000),
		{0},
	});

	run_threads(2, body);

	assert(counter.value == 2 * rounds);
	printf("dekker: %ld entries, correct\n", counter.value);
	return 0;
}
