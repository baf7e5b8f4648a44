// rcu: a thread that replaces a structure by a new one, which others read through
// a pointer at any time (read-copy-update; McKenney and Slingwine, 1998).
//
// In the buggy form the pointer may reach memory before the contents of the new
// structure, when stores to different addresses may be reordered (PSO).
#include "model.h"

struct route {
	_Alignas(64) long number, gateway, metric;
};

static long threads = 2, rounds = 400;
static struct route *routes;
static struct word current, done; // current is an index
static long unfinished[MAX_THREADS];

static void publish(long i)
{
	store(&routes[i].number, i);
	store(&routes[i].gateway, 2 * i);
	store(&routes[i].metric, 3 * i);
	order_stores();
	store(&current.value, i);
}

static void look_up(long id)
{
	long i = load(&current.value);
	const struct route *r = &routes[i];
	if (load(&r->metric) != 3 * i || load(&r->gateway) != 2 * i || load(&r->number) != i)
		unfinished[id]++;
}

static void body(long id)
{
	if (id == 0) {
		for (long i = 1; i <= rounds; i++)
			publish(i);
		store(&done.value, 1);
		return;
	}
	while (!load(&done.value)) {
		look_up(id);
		relax();
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('r', "ROUNDS", &rounds, 1, 1000000),
		{0},
	});
	if (posix_memalign((void **)&routes, 64, (rounds + 1) * sizeof *routes) != 0)
		wrong("no memory for %ld routes", rounds);
	memset(routes, 0, (rounds + 1) * sizeof *routes);

	run_threads(threads, body);

	for (long i = 0; i < threads; i++)
		assert(unfinished[i] == 0);
	printf("rcu: %ld routes, correct\n", rounds);
	free(routes);
	return 0;
}
