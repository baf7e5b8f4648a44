// streamcluster: clusters a stream of points by local search for the k-median
// problem (O'Callaghan and others, 2002), with a barrier of its own.
//
// Points come in chunks. A chunk's points are given to centres; opening a
// centre costs a price, which is raised or lowered until the number of centres
// is in bounds. The centres of all chunks, with the weight of their points, are
// clustered once more at the end. Threads share the points of a chunk; thread 0
// decides between barriers. Coordinates and weights are whole numbers, so sums
// do not depend on how points are shared.
//
// The barrier is a counter and a flag that says whether threads arrive or
// depart. In the buggy form a thread first spins on the flag without the lock.
#include "suite.h"

enum { MAX_DIMENSIONS = 256, SPINS = 200, CLUSTERS = 4 };

struct point {
	const int *place;
	long weight;
	long centre;  // number of a point
	int64_t cost; // weight times squared distance to the centre
};

static long threads = 4, n = 256, chunk = 128, dimensions = 8, least = 4, most = 8, seed = 1;
static struct point *points; // of the chunk
static long count;
static bool *is_centre, *moves, *closes; // by point
static long *centres, *slot_of, centre_count;
static int64_t *extra[MAX_THREADS]; // by slot: cost of moving a centre's points to the candidate
static int64_t saved[MAX_THREADS];
static int64_t price, lowest_price, highest_price;
static long candidate;
static bool better, settled;
static uint64_t random_state;

static pthread_mutex_t barrier_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t phase_changed = PTHREAD_COND_INITIALIZER;
static volatile int is_arrival_phase = 1;
static long arrived;

#ifdef BUGGY
static void spin_while(int phase)
{
	for (int i = 0; i < SPINS && is_arrival_phase == phase; i++) { // race: is_arrival_phase
	}
}
#else
static void spin_while(int phase)
{
	(void)phase;
}
#endif

static void set_phase(int phase)
{
	is_arrival_phase = phase; // race: is_arrival_phase
	pthread_cond_broadcast(&phase_changed);
}

static void wait_while(int phase)
{
	while (is_arrival_phase == phase)
		pthread_cond_wait(&phase_changed, &barrier_mutex);
}

// own_barrier waits until all threads have arrived.
static void own_barrier(void)
{
	HINT(pcs_enter());
	spin_while(0);
	pthread_mutex_lock(&barrier_mutex);
	wait_while(0);
	if (++arrived == threads) {
		set_phase(0);
	} else {
		pthread_mutex_unlock(&barrier_mutex);
		spin_while(1);
		pthread_mutex_lock(&barrier_mutex);
		wait_while(1);
	}
	if (--arrived == 0)
		set_phase(1);
	pthread_mutex_unlock(&barrier_mutex);
	HINT(pcs_exit());
}

static int64_t distance(const struct point *a, const struct point *b)
{
	int64_t sum = 0;
	for (long k = 0; k < dimensions; k++) {
		int64_t d = a->place[k] - b->place[k];
		sum += d * d;
	}
	return a->weight * sum;
}

static void open_centre(long i)
{
	is_centre[i] = true;
	slot_of[i] = centre_count;
	centres[centre_count++] = i;
}

static long first_point(long id)
{
	return share_start(count, threads, id);
}

// move_nearer gives the thread's points to centre i if that is nearer.
static void move_nearer(long id, long i, bool always)
{
	for (long p = first_point(id); p < first_point(id + 1); p++) {
		int64_t cost = distance(&points[p], &points[i]);
		if (always || cost < points[p].cost) {
			points[p].cost = cost;
			points[p].centre = i;
		}
	}
}

// next_centre draws which point from the given one on becomes a centre: each
// with the probability of its cost in units of the price.
static long next_centre(long from)
{
	while (from < count && points[from].cost <= random_unit(&random_state) * price)
		from++;
	return from;
}

// start makes a first solution.
static void start(long id)
{
	if (id == 0) {
		memset(is_centre, 0, count * sizeof *is_centre);
		centre_count = 0;
		open_centre(0);
		candidate = 0;
	}
	own_barrier();
	for (bool first = true; candidate < count; first = false) {
		move_nearer(id, candidate, first);
		own_barrier();
		if (id == 0) {
			candidate = next_centre(candidate + 1);
			if (candidate < count)
				open_centre(candidate);
		}
		own_barrier();
	}
	own_barrier();
}

// weigh computes the savings of the thread's points that are nearer to the
// candidate, and the cost of moving the other points of each centre there.
static void weigh(long id)
{
	saved[id] = 0;
	memset(extra[id], 0, centre_count * sizeof *extra[id]);
	for (long p = first_point(id); p < first_point(id + 1); p++) {
		int64_t cost = distance(&points[p], &points[candidate]);
		moves[p] = cost < points[p].cost;
		if (moves[p])
			saved[id] += points[p].cost - cost;
		else
			extra[id][slot_of[points[p].centre]] += cost - points[p].cost;
	}
}

// decide reports whether to open the candidate, and which centres then close.
static void decide(void)
{
	int64_t gain = is_centre[candidate] ? 0 : -price;
	for (long t = 0; t < threads; t++)
		gain += saved[t];
	for (long c = 0; c < centre_count; c++) {
		int64_t cost = 0;
		for (long t = 0; t < threads; t++)
			cost += extra[t][c];
		closes[centres[c]] = centres[c] != candidate && cost < price;
		if (closes[centres[c]])
			gain += price - cost;
	}
	better = gain > 0;
}

static void move_points(long id)
{
	for (long p = first_point(id); p < first_point(id + 1); p++)
		if (moves[p] || closes[points[p].centre]) {
			points[p].cost = distance(&points[p], &points[candidate]);
			points[p].centre = candidate;
		}
}

static void replace_centres(void)
{
	long old_count = centre_count;
	centre_count = 0;
	is_centre[candidate] = false;
	for (long c = 0; c < old_count; c++) {
		long i = centres[c];
		if (i == candidate)
			continue;
		is_centre[i] = false;
		if (!closes[i])
			open_centre(i);
	}
	open_centre(candidate);
}

// consider opens the candidate if that pays. It reports whether it did.
static bool consider(long id)
{
	weigh(id);
	own_barrier();
	if (id == 0)
		decide();
	own_barrier();
	bool opened = better;
	if (opened)
		move_points(id);
	own_barrier();
	if (opened && id == 0)
		replace_centres();
	return opened;
}

// improve tries points as centres until many in a row give no improvement.
static void improve(long id)
{
	for (long failures = 0; failures < 3 * most; failures++) {
		if (id == 0)
			candidate = random_below(&random_state, count);
		own_barrier();
		if (consider(id))
			failures = -1;
	}
}

// adjust_price halves the range of prices that contains the right one.
static void adjust_price(void)
{
	settled = centre_count >= least && centre_count <= most;
	if (centre_count > most)
		lowest_price = price;
	else
		highest_price = price;
	if (highest_price - lowest_price <= 1)
		settled = true;
	if (!settled)
		price = lowest_price + (highest_price - lowest_price) / 2;
}

// cluster finds centres for the points of the chunk.
static void cluster(long id)
{
	if (id == 0) {
		lowest_price = highest_price = 0;
		for (long p = 0; p < count; p++)
			highest_price += distance(&points[p], &points[0]);
		price = highest_price / 2;
	}
	own_barrier();
	start(id);
	do {
		improve(id);
		own_barrier();
		if (id == 0)
			adjust_price();
		own_barrier();
	} while (!settled);
}

// The stream, and the centres that have been found in it.
static int *stream;
static struct point *kept;
static long kept_count;

// A place of the stream is near one of some clusters, in whose number it
// differs from the next. The points' places do not depend on the number of
// centres to be found.
static void make_place(int *place, long i)
{
	uint64_t random = random_at(seed, i);
	long cluster = random_below(&random, CLUSTERS);
	for (long k = 0; k < dimensions; k++)
		place[k] = random_at(seed + 1, cluster * MAX_DIMENSIONS + k) % 200 + random_below(&random, 56);
}

static void load_chunk(long first)
{
	count = n - first < chunk ? n - first : chunk;
	for (long p = 0; p < count; p++) {
		make_place(&stream[(first + p) * dimensions], first + p);
		points[p] = (struct point){&stream[(first + p) * dimensions], 1, 0, 0};
	}
}

// check_chunk verifies that costs and centres are consistent. It returns the
// cost of the solution.
static int64_t check_chunk(void)
{
	int64_t sum = 0;
	if (centre_count < 1 || (settled && centre_count > most && highest_price - lowest_price > 1))
		wrong("there are %ld centres", centre_count);
	for (long p = 0; p < count; p++) {
		const struct point *c = &points[points[p].centre];
		if (!is_centre[points[p].centre] || points[p].cost != distance(&points[p], c))
			wrong("point %ld costs %lld at %ld", p, (long long)points[p].cost, points[p].centre);
		sum += points[p].cost;
	}
	return sum;
}

// keep_centres adds the chunk's centres with the weight of their points to
// those kept.
static void keep_centres(void)
{
	check_chunk();
	for (long c = 0; c < centre_count; c++) {
		kept[kept_count + c] = points[centres[c]];
		kept[kept_count + c].weight = 0;
	}
	for (long p = 0; p < count; p++)
		kept[kept_count + slot_of[points[p].centre]].weight += points[p].weight;
	kept_count += centre_count;
}

static void work(long id)
{
	for (long first = 0; first < n; first += chunk) {
		if (id == 0)
			load_chunk(first);
		own_barrier();
		cluster(id);
		if (id == 0)
			keep_centres();
	}
	if (id == 0) {
		count = kept_count;
		memcpy(points, kept, count * sizeof *points);
	}
	own_barrier();
	cluster(id);
}

static void report(void)
{
	int64_t cost = check_chunk();
	long weight = 0;
	for (long p = 0; p < count; p++)
		weight += points[p].weight;
	if (weight != n)
		wrong("the centres stand for %ld points", weight);
	printf("streamcluster: %ld points, %ld centres, cost %lld, correct\n", n, centre_count, (long long)cost);
}

int main(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		NUMBER('n', "POINTS", &n, 1, 10000000),
		NUMBER('c', "CHUNK", &chunk, 1, 1000000),
		NUMBER('d', "DIMENSIONS", &dimensions, 1, MAX_DIMENSIONS),
		NUMBER('k', "LEAST_CENTRES", &least, 1, 1000),
		NUMBER('l', "MOST_CENTRES", &most, 1, 1000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	};
	read_arguments(argc, argv, known);
	if (least > most)
		usage_error(known);
	random_state = seed;
	// A chunk may keep all its points as centres.
	points = allocate(n + chunk, sizeof *points);
	kept = allocate(n, sizeof *kept);
	stream = allocate(n * dimensions, sizeof *stream);
	is_centre = allocate(n + chunk, sizeof *is_centre);
	moves = allocate(n + chunk, sizeof *moves);
	closes = allocate(n + chunk, sizeof *closes);
	centres = allocate(n + chunk, sizeof *centres);
	slot_of = allocate(n + chunk, sizeof *slot_of);
	for (long t = 0; t < threads; t++)
		extra[t] = allocate(n + chunk, sizeof *extra[t]);

	run_threads(threads, work);

	report();
	for (long t = 0; t < threads; t++)
		free(extra[t]);
	free(points);
	free(kept);
	free(stream);
	free(is_centre);
	free(moves);
	free(closes);
	free(centres);
	free(slot_of);
	return 0;
}
