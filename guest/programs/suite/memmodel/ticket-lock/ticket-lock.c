// ticket-lock: a lock that serves threads in the order in which they drew numbers
// (Mellor-Crummey and Scott, 1991), released by a plain store.
//
// In the buggy form that store may reach memory before those that the lock
// protects, when stores to different addresses may be reordered (PSO): the
// next thread reads the old value, and an addition is lost.
#include "model.h"

static long threads = 2, rounds = 200;
static struct word next, serving, counter;

static long enter(void)
{
	long ticket = __atomic_fetch_add(&next.value, 1, __ATOMIC_SEQ_CST);
	while (load(&serving.value) != ticket)
		relax();
	return ticket;
}

static void leave(long ticket)
{
	order_stores();
	store(&serving.value, ticket + 1);
}

static void body(long id)
{
	(void)id;
	for (long i = 0; i < rounds; i++) {
		long ticket = enter();
		store(&counter.value, load(&counter.value) + 1);
		leave(ticket);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('r', "ROUNDS", &rounds, 1, 100000000),
		{0},
	});

	run_threads(threads, body);

	assert(counter.value == threads * rounds);
	printf("ticket-lock: %ld entries of each thread, correct\n", rounds);
	return 0;
}
