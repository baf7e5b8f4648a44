// fmm: the gravitational n-body problem in two dimensions by the adaptive fast
// multipole method (Carrier, Greengard and Rokhlin, 1988; parallel structure
// after Singh and others, 1993).
//
// The plane is complex; the field of a body of mass m at z is the sum of
// m / (z - position). The threads build a quadtree of all bodies together,
// splitting a box when it has too many. Multipole expansions are computed from
// the leaves up: the thread that finishes the last of a box's children does the
// box. Local expansions are computed downwards, from boxes far away but near to
// the parent. At the leaves the rest is added body by body.
#include "suite.h"

enum {
	LOCKS = 512,      // shared by all boxes
	MAX_TERMS = 40,
	MAX_DEPTH = 24,
	MAX_NEAR = 9,     // boxes that touch a box and are not smaller
	CHECKED = 64      // bodies whose field is checked
};

struct complex {
	double re, im;
};

struct body {
	struct complex position, field;
	double mass;
	int next; // in the same leaf
};

enum { NONE = -1 };

struct box {
	struct complex centre;
	double half;
	int depth, parent;
	bool leaf;
	int child[4];
	int first, count; // bodies of a leaf
	int unfinished;   // children without multipole expansion
	int near[MAX_NEAR], near_count;
	struct complex multipole[MAX_TERMS]; // coefficient of (z - centre)^-(k+1) in the field
	struct complex local[MAX_TERMS];     // coefficient of (z - centre)^k in the field
};

static long threads = 4, n = 512, capacity = 8, terms = 20, steps = 1, seed = 1;
static struct body *bodies;
static struct box *boxes; // box 0 is the root
static long boxes_per_thread;
static long boxes_used[MAX_THREADS];
static int *order; // boxes level by level, in the order of the tree
static long level_start[MAX_DEPTH + 2], levels;
static int *leaves;
static long leaf_count;
static pthread_mutex_t locks[LOCKS];
static pthread_barrier_t barrier;
static double binomial[2 * MAX_TERMS][2 * MAX_TERMS];

static struct complex plus(struct complex a, struct complex b)
{
	return (struct complex){a.re + b.re, a.im + b.im};
}

static struct complex minus(struct complex a, struct complex b)
{
	return (struct complex){a.re - b.re, a.im - b.im};
}

static struct complex times(struct complex a, struct complex b)
{
	return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct complex scaled(double factor, struct complex a)
{
	return (struct complex){factor * a.re, factor * a.im};
}

static struct complex inverse(struct complex a)
{
	double square = a.re * a.re + a.im * a.im;
	return (struct complex){a.re / square, -a.im / square};
}

static void make_bodies(void)
{
	for (long i = 0; i < n; i++) {
		uint64_t random = random_at(seed, i);
		double x, y;
		do {
			x = 2 * random_unit(&random) - 1;
			y = 2 * random_unit(&random) - 1;
		} while (x * x + y * y > 1);
		double radius = random_unit(&random); // dense around two centres
		double centre = i % 2 ? 0.25 : 0.75;
		bodies[i].position = (struct complex){centre + 0.24 * radius * x, centre + 0.24 * radius * y};
		bodies[i].mass = (1 + random_unit(&random)) / n;
	}
}

static int new_box(long id, int parent, struct complex centre, double half)
{
	if (boxes_used[id] == boxes_per_thread)
		wrong("thread %ld has used all its %ld boxes", id, boxes_per_thread);
	int number = id * boxes_per_thread + boxes_used[id]++;
	struct box *b = &boxes[number];
	memset(b, 0, sizeof *b);
	b->centre = centre;
	b->half = half;
	b->parent = parent;
	b->depth = parent == NONE ? 0 : boxes[parent].depth + 1;
	b->leaf = true;
	b->first = NONE;
	for (int k = 0; k < 4; k++)
		b->child[k] = NONE;
	return number;
}

static int quarter(const struct box *b, struct complex position)
{
	return (position.re >= b->centre.re) | (position.im >= b->centre.im) << 1;
}

static int child_at(long id, int number, int where)
{
	struct box *b = &boxes[number];
	if (b->child[where] == NONE) {
		double half = b->half / 2;
		struct complex centre = {
			b->centre.re + (where & 1 ? half : -half),
			b->centre.im + (where & 2 ? half : -half),
		};
		b->child[where] = new_box(id, number, centre, half);
	}
	return b->child[where];
}

static void add_to_leaf(struct box *b, int body)
{
	bodies[body].next = b->first;
	b->first = body;
	b->count++;
}

// split makes a full leaf an inner box; no other thread knows its children
// yet.
static void split(long id, int number)
{
	struct box *b = &boxes[number];
	b->leaf = false;
	for (int body = b->first, next; body != NONE; body = next) {
		next = bodies[body].next;
		add_to_leaf(&boxes[child_at(id, number, quarter(b, bodies[body].position))], body);
	}
	b->first = NONE;
	b->count = 0;
}

static pthread_mutex_t *lock_of(int box)
{
	return &locks[box % LOCKS];
}

static void insert(long id, int body)
{
	int current = 0;
	for (;;) {
		struct box *b = &boxes[current];
		pthread_mutex_lock(lock_of(current));
		if (b->leaf && b->count >= capacity && b->depth < MAX_DEPTH)
			split(id, current);
		if (b->leaf) {
			add_to_leaf(b, body);
			pthread_mutex_unlock(lock_of(current));
			return;
		}
		int child = child_at(id, current, quarter(b, bodies[body].position));
		pthread_mutex_unlock(lock_of(current));
		current = child;
	}
}

// sort_leaf puts a leaf's bodies in the order of their numbers, so that sums
// over them do not depend on the order in which threads inserted them.
static void sort_leaf(struct box *b)
{
	int sorted = NONE;
	for (int body = b->first, next; body != NONE; body = next) {
		next = bodies[body].next;
		int *place = &sorted;
		while (*place != NONE && *place < body)
			place = &bodies[*place].next;
		bodies[body].next = *place;
		*place = body;
	}
	b->first = sorted;
}

// list_boxes lists all boxes level by level.
static void list_boxes(void)
{
	order[0] = 0;
	levels = leaf_count = 0;
	long count = 1;
	for (long done = 0; done < count; levels++) {
		level_start[levels] = done;
		for (long end = count; done < end; done++) {
			struct box *b = &boxes[order[done]];
			if (b->leaf)
				leaves[leaf_count++] = order[done];
			for (int k = 0; k < 4; k++)
				if (b->child[k] != NONE) {
					order[count++] = b->child[k];
					b->unfinished++;
				}
		}
	}
	level_start[levels] = count;
}

static void expand_bodies(struct box *b)
{
	for (int i = b->first; i != NONE; i = bodies[i].next) {
		struct complex d = minus(bodies[i].position, b->centre), power = {bodies[i].mass, 0};
		for (long k = 0; k < terms; k++) {
			b->multipole[k] = plus(b->multipole[k], power);
			power = times(power, d);
		}
	}
}

// shift_up adds the expansion of a child to that of its parent.
static void shift_up(struct box *to, const struct box *from)
{
	struct complex d = minus(from->centre, to->centre), powers[MAX_TERMS] = {{1, 0}};
	for (long k = 1; k < terms; k++)
		powers[k] = times(powers[k - 1], d);
	for (long l = 0; l < terms; l++)
		for (long k = 0; k <= l; k++)
			to->multipole[l] = plus(to->multipole[l],
				scaled(binomial[l][k], times(from->multipole[k], powers[l - k])));
}

// go_up computes the multipole expansion of a leaf and of every ancestor whose
// last child this was.
static void go_up(int number)
{
	expand_bodies(&boxes[number]);
	while (number != 0) {
		number = boxes[number].parent;
		struct box *b = &boxes[number];
		pthread_mutex_lock(lock_of(number));
		bool complete = --b->unfinished == 0;
		pthread_mutex_unlock(lock_of(number));
		if (!complete)
			return;
		for (int k = 0; k < 4; k++)
			if (b->child[k] != NONE)
				shift_up(b, &boxes[b->child[k]]);
	}
}

static bool touch(const struct box *a, const struct box *b)
{
	double reach = (a->half + b->half) * (1 + 1e-9);
	return fabs(a->centre.re - b->centre.re) <= reach && fabs(a->centre.im - b->centre.im) <= reach;
}

// shift_down adds the local expansion of the parent to that of its child.
static void shift_down(struct box *to, const struct box *from)
{
	struct complex d = minus(to->centre, from->centre), powers[MAX_TERMS] = {{1, 0}};
	for (long k = 1; k < terms; k++)
		powers[k] = times(powers[k - 1], d);
	for (long l = 0; l < terms; l++)
		for (long k = l; k < terms; k++)
			to->local[l] = plus(to->local[l], scaled(binomial[k][l], times(from->local[k], powers[k - l])));
}

// take_far adds the multipole expansion of a box far away to a local one.
static void take_far(struct box *to, const struct box *from)
{
	// 1/(z - c)^(k+1) around z0, with d = z0 - c:
	// the sum over l of binomial(k+l, k) (-1)^l d^-(k+l+1) (z - z0)^l.
	struct complex one_over = inverse(minus(to->centre, from->centre));
	struct complex powers[2 * MAX_TERMS];
	powers[0] = one_over;
	for (long k = 1; k < 2 * terms; k++)
		powers[k] = times(powers[k - 1], one_over);
	for (long l = 0; l < terms; l++) {
		struct complex sum = {0, 0};
		for (long k = 0; k < terms; k++)
			sum = plus(sum, scaled(binomial[k + l][k], times(from->multipole[k], powers[k + l])));
		to->local[l] = plus(to->local[l], scaled(l % 2 ? -1 : 1, sum));
	}
}

// take_bodies adds the bodies of a leaf too near for its multipole expansion.
static void take_bodies(struct box *to, const struct box *from)
{
	for (int i = from->first; i != NONE; i = bodies[i].next) {
		struct complex one_over = inverse(minus(to->centre, bodies[i].position));
		struct complex power = scaled(bodies[i].mass, one_over);
		for (long l = 0; l < terms; l++) {
			to->local[l] = plus(to->local[l], power);
			power = scaled(-1, times(power, one_over));
		}
	}
}

// consider classifies a box that is near the parent of b or a child of one.
static void consider(struct box *b, int number)
{
	struct box *other = &boxes[number];
	if (touch(b, other))
		b->near[b->near_count++] = number;
	else if (other->depth == b->depth)
		take_far(b, other);
	else
		take_bodies(b, other);
}

// go_down finds the boxes near to a box and computes its local expansion.
static void go_down(struct box *b)
{
	if (b->parent == NONE) {
		b->near[b->near_count++] = 0;
		return;
	}
	struct box *parent = &boxes[b->parent];
	shift_down(b, parent);
	for (int i = 0; i < parent->near_count; i++) {
		struct box *other = &boxes[parent->near[i]];
		if (other->leaf)
			consider(b, parent->near[i]);
		for (int k = 0; k < 4; k++)
			if (other->child[k] != NONE)
				consider(b, other->child[k]);
	}
}

static struct complex field_of_body(struct complex at, const struct body *from)
{
	return scaled(from->mass, inverse(minus(at, from->position)));
}

static struct complex field_of_multipole(struct complex at, const struct box *from)
{
	struct complex one_over = inverse(minus(at, from->centre)), sum = {0, 0};
	for (long k = terms - 1; k >= 0; k--)
		sum = times(plus(sum, from->multipole[k]), one_over);
	return sum;
}

static struct complex field_of_local(struct complex at, const struct box *b)
{
	struct complex d = minus(at, b->centre), sum = {0, 0};
	for (long k = terms - 1; k >= 0; k--)
		sum = plus(times(sum, d), b->local[k]);
	return sum;
}

// add_near adds to the bodies of a leaf the field of another box that touches
// it, body by body or by expansion.
static void add_near(struct box *leaf, const struct box *other)
{
	bool far = !touch(leaf, other);
	if (!far && !other->leaf) {
		for (int k = 0; k < 4; k++)
			if (other->child[k] != NONE)
				add_near(leaf, &boxes[other->child[k]]);
		return;
	}
	for (int i = leaf->first; i != NONE; i = bodies[i].next) {
		struct body *b = &bodies[i];
		if (far) {
			b->field = plus(b->field, field_of_multipole(b->position, other));
			continue;
		}
		for (int j = other->first; j != NONE; j = bodies[j].next)
			if (j != i)
				b->field = plus(b->field, field_of_body(b->position, &bodies[j]));
	}
}

static void evaluate(struct box *leaf)
{
	for (int i = leaf->first; i != NONE; i = bodies[i].next)
		bodies[i].field = field_of_local(bodies[i].position, leaf);
	for (int i = 0; i < leaf->near_count; i++)
		add_near(leaf, &boxes[leaf->near[i]]);
}

static void build_tree(long id)
{
	boxes_used[id] = 0;
	if (id == 0)
		new_box(0, NONE, (struct complex){0.5, 0.5}, 0.5);
	pthread_barrier_wait(&barrier);
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		insert(id, i);
	pthread_barrier_wait(&barrier);
	if (id == 0)
		list_boxes();
	pthread_barrier_wait(&barrier);
}

// move shifts a body a little along the field, staying in the unit square.
static void move(struct body *b)
{
	const double step = 1e-5;
	b->position.re = fmin(fmax(b->position.re - step * b->field.re, 0), 0.999);
	b->position.im = fmin(fmax(b->position.im + step * b->field.im, 0), 0.999);
}

static void work(long id)
{
	for (long s = 0; s < steps; s++) {
		build_tree(id);
		long first = share_start(leaf_count, threads, id), last = share_start(leaf_count, threads, id + 1);
		for (long i = first; i < last; i++) {
			sort_leaf(&boxes[leaves[i]]);
			go_up(leaves[i]);
		}
		pthread_barrier_wait(&barrier);
		for (long l = 0; l < levels; l++) {
			long count = level_start[l + 1] - level_start[l];
			for (long i = share_start(count, threads, id); i < share_start(count, threads, id + 1); i++)
				go_down(&boxes[order[level_start[l] + i]]);
			pthread_barrier_wait(&barrier);
		}
		for (long i = first; i < last; i++)
			evaluate(&boxes[leaves[i]]);
		pthread_barrier_wait(&barrier);
		if (s == steps - 1)
			return;
		for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
			move(&bodies[i]);
		pthread_barrier_wait(&barrier);
	}
}

// check_fields compares fields with the sum over all bodies.
static void check_fields(void)
{
	double error = 0, total = 0;
	for (long i = 0; i < n; i += n / CHECKED + 1) {
		struct complex exact = {0, 0};
		for (long j = 0; j < n; j++)
			if (j != i)
				exact = plus(exact, field_of_body(bodies[i].position, &bodies[j]));
		struct complex d = minus(exact, bodies[i].field);
		error += d.re * d.re + d.im * d.im;
		total += exact.re * exact.re + exact.im * exact.im;
	}
	if (!(sqrt(error) <= pow(0.6, terms) * sqrt(total)))
		wrong("fields are off by %g of their size", sqrt(error / total));
}

static void fill_binomials(void)
{
	for (int k = 0; k < 2 * MAX_TERMS; k++) {
		binomial[k][0] = 1;
		for (int l = 1; l <= k; l++)
			binomial[k][l] = binomial[k - 1][l - 1] + binomial[k - 1][l];
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "BODIES", &n, 2, 1000000),
		NUMBER('c', "CAPACITY", &capacity, 1, 1000),
		NUMBER('k', "TERMS", &terms, 4, MAX_TERMS),
		NUMBER('t', "STEPS", &steps, 1, 1000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	// One thread may make all boxes: chains of them where bodies are close.
	boxes_per_thread = 8 * n / capacity + 8 * MAX_DEPTH;
	bodies = allocate(n, sizeof *bodies);
	boxes = allocate(threads * boxes_per_thread, sizeof *boxes);
	order = allocate(threads * boxes_per_thread, sizeof *order);
	leaves = allocate(threads * boxes_per_thread, sizeof *leaves);
	fill_binomials();
	make_bodies();
	for (long i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, work);

	check_fields();
	uint64_t digest = 0;
	for (long i = 0; i < n; i++) {
		digest_double(&digest, bodies[i].field.re);
		digest_double(&digest, bodies[i].field.im);
	}
	printf("fmm: %ld bodies, %ld levels, %ld leaves, digest %016llx, correct\n",
	       n, levels, leaf_count, (unsigned long long)digest);
	for (long i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&locks[i]);
	pthread_barrier_destroy(&barrier);
	free(bodies);
	free(boxes);
	free(order);
	free(leaves);
	return 0;
}
