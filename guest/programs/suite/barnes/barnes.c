// barnes: the gravitational n-body problem in three dimensions by the method of
// Barnes and Hut (1986), parallelized after Singh and others (1995).
//
// Each time step builds an octree of all bodies: the threads insert their
// bodies at the same time, each holding only the lock of the cell that it
// inspects. The tree does not depend on the order, nor does the result. Then
// cells get their mass and centre, the tree is cut into zones of equal cost,
// and each thread computes the accelerations of its zone's bodies and moves
// them.
#include "suite.h"

enum {
	LOCKS = 512,     // shared by all cells
	TOP_LEVELS = 2,  // whose cells one thread summarises
	MAX_TOP = 64,    // cells on the level below them
	CHECKED = 64     // bodies whose acceleration is checked
};

struct body {
	double mass, position[3], velocity[3], acceleration[3];
	long cost; // interactions in the last step
};

// A cell is a cube. A child is a cell (its number), a body (-2 minus its
// number), or nothing.
enum { NOTHING = -1 };

struct cell {
	double centre[3], half; // of the cube
	double mass, point[3];  // sum and centre of mass of its bodies
	long cost;
	int child[8];
};

static long threads = 4, n = 256, steps = 2, seed = 1;
static const double opening = 0.7, softening = 0.02;
static struct body *bodies;
static struct cell *cells; // cell 0 is the root
static long cells_per_thread;
static long cells_used[MAX_THREADS];
static pthread_mutex_t locks[LOCKS];
static double lowest[MAX_THREADS], highest[MAX_THREADS];
static int top[MAX_TOP];
static long top_count;
static pthread_barrier_t barrier;

static pthread_mutex_t id_mutex = PTHREAD_MUTEX_INITIALIZER;
static long next_id;
static double tracktime, time_step = 0.01;

static void make_body(struct body *b, long i)
{
	uint64_t random = random_at(seed, i);
	double square;
	do {
		square = 0;
		for (int k = 0; k < 3; k++) {
			b->position[k] = 2 * random_unit(&random) - 1;
			square += b->position[k] * b->position[k];
		}
	} while (square > 1);
	double radius = random_unit(&random); // dense in the middle
	for (int k = 0; k < 3; k++) {
		b->position[k] *= radius;
		b->velocity[k] = 0.2 * (random_unit(&random) - 0.5);
	}
	b->mass = 1.0 / n;
	b->cost = 1;
}

// find_bounds finds the extent of the thread's bodies.
static void find_bounds(long id)
{
	double low = 0, high = 0;
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		for (int k = 0; k < 3; k++) {
			low = fmin(low, bodies[i].position[k]);
			high = fmax(high, bodies[i].position[k]);
		}
	lowest[id] = low;
	highest[id] = high;
}

static int new_cell(long id, const double centre[3], double half)
{
	if (cells_used[id] == cells_per_thread)
		wrong("thread %ld has used all its %ld cells", id, cells_per_thread);
	int number = id * cells_per_thread + cells_used[id]++;
	struct cell *c = &cells[number];
	memcpy(c->centre, centre, sizeof c->centre);
	c->half = half;
	for (int k = 0; k < 8; k++)
		c->child[k] = NOTHING;
	return number;
}

static void make_root(void)
{
	double low = 0, high = 0;
	for (long i = 0; i < threads; i++) {
		low = fmin(low, lowest[i]);
		high = fmax(high, highest[i]);
	}
	double centre = (low + high) / 2;
	cells_used[0] = 0;
	new_cell(0, (double[3]){centre, centre, centre}, (high - low) / 2 * 1.001);
}

static int octant(const struct cell *c, const double position[3])
{
	return (position[0] > c->centre[0]) | (position[1] > c->centre[1]) << 1 | (position[2] > c->centre[2]) << 2;
}

static pthread_mutex_t *lock_of(int cell)
{
	return &locks[cell % LOCKS];
}

// split makes a cell at an octant of another, for the body that is there.
static int split(long id, const struct cell *c, int where, int occupant)
{
	double centre[3], half = c->half / 2;
	for (int k = 0; k < 3; k++)
		centre[k] = c->centre[k] + (where >> k & 1 ? half : -half);
	int number = new_cell(id, centre, half);
	struct cell *new = &cells[number];
	new->child[octant(new, bodies[-2 - occupant].position)] = occupant;
	return number;
}

static void insert(long id, int body)
{
	const double *position = bodies[body].position;
	int current = 0;
	for (;;) {
		struct cell *c = &cells[current];
		int where = octant(c, position);
		pthread_mutex_lock(lock_of(current));
		int child = c->child[where];
		if (child == NOTHING) {
			c->child[where] = -2 - body;
			pthread_mutex_unlock(lock_of(current));
			return;
		}
		if (child < NOTHING)
			child = c->child[where] = split(id, c, where, child);
		pthread_mutex_unlock(lock_of(current));
		current = child;
	}
}

static void add_to(struct cell *c, double mass, const double point[3], long cost)
{
	c->mass += mass;
	c->cost += cost;
	for (int k = 0; k < 3; k++)
		c->point[k] += mass * point[k];
}

// summarise computes the mass, centre of mass and cost of a cell from its
// children, of which cells at depth known and below have theirs already.
static void summarise(int number, int depth, int known)
{
	struct cell *c = &cells[number];
	c->mass = c->cost = 0;
	memset(c->point, 0, sizeof c->point);
	for (int k = 0; k < 8; k++) {
		int child = c->child[k];
		if (child >= 0) {
			if (depth + 1 != known)
				summarise(child, depth + 1, known);
			add_to(c, cells[child].mass, cells[child].point, cells[child].cost);
		} else if (child < NOTHING) {
			struct body *b = &bodies[-2 - child];
			add_to(c, b->mass, b->position, b->cost);
		}
	}
	for (int k = 0; k < 3; k++)
		c->point[k] /= c->mass;
}

// list_top lists the cells below the top levels.
static void list_top(int number, int depth)
{
	if (depth == TOP_LEVELS) {
		top[top_count++] = number;
		return;
	}
	for (int k = 0; k < 8; k++)
		if (cells[number].child[k] >= 0)
			list_top(cells[number].child[k], depth + 1);
}

static void build_tree(long id)
{
	find_bounds(id);
	pthread_barrier_wait(&barrier);
	if (id == 0)
		make_root();
	else
		cells_used[id] = 0;
	pthread_barrier_wait(&barrier);
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		insert(id, i);
	pthread_barrier_wait(&barrier);
	if (id == 0) {
		top_count = 0;
		list_top(0, 0);
	}
	pthread_barrier_wait(&barrier);
	for (long i = id; i < top_count; i += threads)
		summarise(top[i], TOP_LEVELS, -1);
	pthread_barrier_wait(&barrier);
	if (id == 0)
		summarise(0, 0, TOP_LEVELS);
	pthread_barrier_wait(&barrier);
}

static void attract(struct body *b, double mass, const double point[3])
{
	double d[3], square = softening * softening;
	for (int k = 0; k < 3; k++) {
		d[k] = point[k] - b->position[k];
		square += d[k] * d[k];
	}
	double pull = mass / (square * sqrt(square));
	for (int k = 0; k < 3; k++)
		b->acceleration[k] += pull * d[k];
	b->cost++;
}

// attract_by adds the pull of a cell: as one mass if the cell is small for its
// distance, else of its children.
static void attract_by(struct body *b, long self, const struct cell *c)
{
	double square = 0;
	for (int k = 0; k < 3; k++)
		square += (c->point[k] - b->position[k]) * (c->point[k] - b->position[k]);
	if (4 * c->half * c->half < opening * opening * square) {
		attract(b, c->mass, c->point);
		return;
	}
	for (int k = 0; k < 8; k++) {
		int child = c->child[k];
		if (child >= 0)
			attract_by(b, self, &cells[child]);
		else if (child < NOTHING && -2 - child != self)
			attract(b, bodies[-2 - child].mass, bodies[-2 - child].position);
	}
}

// A zone is a range of the bodies in the order of the tree, given by the cost
// of all bodies before it.
struct zone {
	long begin, end; // cost
	int *members;
	long count;
};

static void collect_zone(struct zone *z, const struct cell *c, long before)
{
	for (int k = 0; k < 8 && before < z->end; k++) {
		int child = c->child[k];
		if (child >= 0) {
			if (before + cells[child].cost > z->begin)
				collect_zone(z, &cells[child], before);
			before += cells[child].cost;
		} else if (child < NOTHING) {
			if (before >= z->begin)
				z->members[z->count++] = -2 - child;
			before += bodies[-2 - child].cost;
		}
	}
}

static void move(struct body *b)
{
	for (int k = 0; k < 3; k++) {
		b->velocity[k] += time_step * b->acceleration[k];
		b->position[k] += time_step * b->velocity[k];
	}
}

static void advance(long id, struct zone *z, bool last)
{
	z->begin = share_start(cells[0].cost, threads, id);
	z->end = share_start(cells[0].cost, threads, id + 1);
	z->count = 0;
	collect_zone(z, &cells[0], 0);
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < z->count; i++) {
		struct body *b = &bodies[z->members[i]];
		memset(b->acceleration, 0, sizeof b->acceleration);
		b->cost = 0;
		attract_by(b, z->members[i], &cells[0]);
	}
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < z->count && !last; i++)
		move(&bodies[z->members[i]]);
	pthread_barrier_wait(&barrier);
}

static void *work(void *unused)
{
	pthread_mutex_lock(&id_mutex);
	long id = next_id++;
	pthread_mutex_unlock(&id_mutex);

	double begin = now_seconds();
	struct zone z = {.members = allocate(n, sizeof *z.members)};
	for (long s = 0; s < steps; s++) {
		build_tree(id);
		advance(id, &z, s == steps - 1);
	}
	free(z.members);
	if (id == 0) {
		DELAY(30);
		tracktime = now_seconds() - begin; // race: tracktime
	}
	return unused;
}

static void report_time(void)
{
	double took = tracktime; // race: tracktime
	if (took <= 0)
		wrong("the time for tracking bodies is %f", took);
}

// check_tree verifies that a subtree has its bodies within its cubes, and
// counts them.
static long check_tree(const struct cell *c)
{
	long count = 0;
	for (int k = 0; k < 8; k++) {
		int child = c->child[k];
		if (child >= 0) {
			count += check_tree(&cells[child]);
		} else if (child < NOTHING) {
			const double *p = bodies[-2 - child].position;
			if (octant(c, p) != k || fabs(p[0] - c->centre[0]) > c->half)
				wrong("body %d is in the wrong cell", -2 - child);
			count++;
		}
	}
	return count;
}

// check_forces compares accelerations with the sum over all bodies.
static void check_forces(void)
{
	double error = 0, total = 0;
	for (long i = 0; i < n; i += n / CHECKED + 1) {
		struct body exact = bodies[i];
		memset(exact.acceleration, 0, sizeof exact.acceleration);
		for (long j = 0; j < n; j++)
			if (j != i)
				attract(&exact, bodies[j].mass, bodies[j].position);
		for (int k = 0; k < 3; k++) {
			double d = exact.acceleration[k] - bodies[i].acceleration[k];
			error += d * d;
			total += exact.acceleration[k] * exact.acceleration[k];
		}
	}
	if (!(error <= 0.02 * 0.02 * total))
		wrong("accelerations are off by %g of their size", sqrt(error / total));
}

// read_times reads the length of a step and the end time, from which
// the number of steps follows.
static void read_times(const char *step, const char *stop)
{
	if (step)
		time_step = strtod(step, NULL);
	if (stop == NULL)
		return;
	steps = 0;
	for (double now = 0, end = strtod(stop, NULL); now < end + 0.1 * time_step && steps < 1000; now += time_step)
		steps++;
}

int main(int argc, char **argv)
{
	const char *step = NULL, *stop = NULL;
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "BODIES", &n, 2, 1000000),
		NUMBER('t', "STEPS", &steps, 1, 1000),
		TEXT('d', "DTIME", &step),
		TEXT('e', "TSTOP", &stop),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	read_times(step, stop);
	// Any thread may have to split the cells of all bodies.
	cells_per_thread = 4 * n + 64;
	bodies = allocate(n, sizeof *bodies);
	cells = allocate(threads * cells_per_thread, sizeof *cells);
	for (long i = 0; i < n; i++)
		make_body(&bodies[i], i);
	for (long i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
	pthread_barrier_init(&barrier, NULL, threads);

	pthread_t others[MAX_THREADS];
	for (long i = 1; i < threads; i++)
		start_thread(&others[i], work, NULL);
	DELAY(10);
	work(NULL);
#ifdef BUGGY
	report_time();
#endif
	for (long i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
#ifndef BUGGY
	report_time();
#endif

	long found = check_tree(&cells[0]);
	if (found != n || fabs(cells[0].mass - 1) > 1e-9)
		wrong("the tree has %ld bodies of mass %g", found, cells[0].mass);
	check_forces();
	uint64_t digest = 0;
	for (long i = 0; i < n; i++)
		for (int k = 0; k < 3; k++)
			digest_double(&digest, bodies[i].acceleration[k]);
	printf("barnes: %ld bodies, %ld steps, digest %016llx, correct\n", n, steps, (unsigned long long)digest);
	for (long i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&locks[i]);
	pthread_barrier_destroy(&barrier);
	free(bodies);
	free(cells);
	return 0;
}
