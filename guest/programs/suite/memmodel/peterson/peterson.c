// peterson: mutual exclusion of two threads by loads and stores alone, after G. L.
// Peterson, Myths about the mutual exclusion problem (1981).
//
// A thread says that it wants to enter, lets the other go first, and then reads
// whether the other wants to. In the buggy form its stores may still be in the
// store buffer when it reads: both threads enter, and an addition is lost.
#include "model.h"

static long rounds = 200;
static struct word wants[2], turn, counter;

static void enter(long me)
{
	store(&wants[me].value, 1);
	store(&turn.value, 1 - me);
	order_all();
	while (load(&wants[1 - me].value) && load(&turn.value) == 1 - me)
		relax();
}

static void leave(long me)
{
	order_stores();
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
	printf("peterson: %ld entries, correct\n", counter.value);
	return 0;
}
