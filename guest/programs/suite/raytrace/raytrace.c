// raytrace: a picture of mirroring balls on a chequered floor by recursive ray
// tracing (Whitted, 1980), the balls sorted into a uniform grid (Amanatides and
// Woo, 1987).
//
// The picture is cut into tiles. Each thread has a queue of tiles and steals
// from others when it is empty. Rays are numbered under one lock, as in the
// program that this one stands for.
#include "taskqueue.h"

enum { TILE = 8, CELLS = 8, MAX_BALLS = 4096, MAX_BOUNCES = 4, CHECKED = 16 };

struct vector {
	double x, y, z;
};

struct ball {
	struct vector centre, colour;
	double radius, mirror;
};

// A cell of the grid, with the balls that reach into it.
struct cell {
	long *balls, count;
};

struct ray {
	struct vector from, along; // along has length 1
};

// The hit of a ray: none when distance is infinite, the floor when ball is
// -1.
struct hit {
	double distance;
	long ball;
};

static long threads = 4, width = 32, ball_count = 32, seed = 1;
static struct ball *balls;
static struct cell cells[CELLS * CELLS * CELLS];
static unsigned char *picture; // three bytes for each point
static long tiles_drawn;
static long ray_count;
static pthread_mutex_t ray_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static const struct vector eye = {0.5, 0.6, -1.2};
static const struct vector lamps[2] = {{-1, 3, -1}, {2, 2, 0}};

static struct vector plus(struct vector a, struct vector b)
{
	return (struct vector){a.x + b.x, a.y + b.y, a.z + b.z};
}

static struct vector scaled(double f, struct vector a)
{
	return (struct vector){f * a.x, f * a.y, f * a.z};
}

static struct vector minus(struct vector a, struct vector b)
{
	return plus(a, scaled(-1, b));
}

static double dot(struct vector a, struct vector b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vector unit_vector(struct vector a)
{
	return scaled(1 / sqrt(dot(a, a)), a);
}

// make_balls places the balls within the unit cube.
static void make_balls(void)
{
	for (long i = 0; i < ball_count; i++) {
		uint64_t random = random_at(seed, i);
		struct ball *b = &balls[i];
		b->radius = 0.02 + 0.06 * random_unit(&random);
		double room = 1 - 2 * b->radius;
		b->centre.x = b->radius + room * random_unit(&random);
		b->centre.y = b->radius + room * random_unit(&random);
		b->centre.z = b->radius + room * random_unit(&random);
		b->colour = (struct vector){random_unit(&random), random_unit(&random), random_unit(&random)};
		b->mirror = 0.6 * random_unit(&random);
	}
}

static long cell_index(double coordinate)
{
	long i = floor(coordinate * CELLS);
	return i < 0 ? 0 : i >= CELLS ? CELLS - 1 : i;
}

static struct cell *cell_at(long x, long y, long z)
{
	return &cells[(x * CELLS + y) * CELLS + z];
}

static void sort_ball_into(long i, bool count_only)
{
	struct ball *b = &balls[i];
	for (long x = cell_index(b->centre.x - b->radius); x <= cell_index(b->centre.x + b->radius); x++)
		for (long y = cell_index(b->centre.y - b->radius); y <= cell_index(b->centre.y + b->radius); y++)
			for (long z = cell_index(b->centre.z - b->radius); z <= cell_index(b->centre.z + b->radius); z++) {
				struct cell *c = cell_at(x, y, z);
				if (!count_only)
					c->balls[c->count] = i;
				c->count++;
			}
}

static void fill_cells(void)
{
	for (long i = 0; i < ball_count; i++)
		sort_ball_into(i, true);
	for (long c = 0; c < CELLS * CELLS * CELLS; c++) {
		cells[c].balls = allocate(cells[c].count, sizeof(long));
		cells[c].count = 0;
	}
	for (long i = 0; i < ball_count; i++)
		sort_ball_into(i, false);
}

static void meet_ball(const struct ray *r, long i, struct hit *h)
{
	struct vector d = minus(balls[i].centre, r->from);
	double along = dot(d, r->along);
	double inside = balls[i].radius * balls[i].radius - (dot(d, d) - along * along);
	if (inside < 0)
		return;
	double distance = along - sqrt(inside);
	// Of two balls hit at the same point the first counts, in any order.
	if (distance > 1e-9 && (distance < h->distance || (distance == h->distance && i < h->ball)))
		*h = (struct hit){distance, i};
}

static void meet_floor(const struct ray *r, struct hit *h)
{
	double distance = -r->from.y / r->along.y;
	if (distance > 1e-9 && distance < h->distance)
		*h = (struct hit){distance, -1};
}

// A walk along one axis of the grid: the distance at which the ray enters the
// next cell, the increment for each further cell, and the direction.
struct walk {
	long cell, step;
	double next, each;
};

static struct walk start_walk(double from, double along, double entry)
{
	struct walk w = {cell_index(from + entry * along), along < 0 ? -1 : 1, INFINITY, INFINITY};
	if (along != 0) {
		w.each = 1 / fabs(along) / CELLS;
		w.next = ((double)(w.cell + (along > 0)) / CELLS - from) / along;
	}
	return w;
}

// clip narrows the stretch of a ray to the part with that coordinate within the
// unit cube.
static void clip(double from, double along, double *enter, double *leave)
{
	double a = (0 - from) / along, b = (1 - from) / along;
	*enter = fmax(*enter, fmin(a, b));
	*leave = fmin(*leave, fmax(a, b));
}

static void meet_balls(const struct ray *r, struct hit *h)
{
	double enter = 0, leave = INFINITY;
	clip(r->from.x, r->along.x, &enter, &leave);
	clip(r->from.y, r->along.y, &enter, &leave);
	clip(r->from.z, r->along.z, &enter, &leave);
	if (!(enter <= leave))
		return;
	struct walk axes[3] = {
		start_walk(r->from.x, r->along.x, enter),
		start_walk(r->from.y, r->along.y, enter),
		start_walk(r->from.z, r->along.z, enter),
	};
	for (;;) {
		const struct cell *c = cell_at(axes[0].cell, axes[1].cell, axes[2].cell);
		for (long k = 0; k < c->count; k++)
			meet_ball(r, c->balls[k], h);
		int axis = axes[0].next < axes[1].next ? 0 : 1;
		if (axes[2].next < axes[axis].next)
			axis = 2;
		// A hit before the end of the cell is the nearest.
		if (h->distance < axes[axis].next)
			return;
		axes[axis].cell += axes[axis].step;
		if (axes[axis].cell < 0 || axes[axis].cell >= CELLS)
			return;
		axes[axis].next += axes[axis].each;
	}
}

// meet finds the first hit of the ray: with the grid, or, for checking, by
// testing every ball.
static struct hit meet(const struct ray *r, bool plainly)
{
	struct hit h = {INFINITY, 0};
	if (!plainly)
		meet_balls(r, &h);
	for (long i = 0; plainly && i < ball_count; i++)
		meet_ball(r, i, &h);
	meet_floor(r, &h);
	return h;
}

static void number_ray(bool plainly)
{
	if (plainly)
		return;
	HINT(pcs_enter());
	pthread_mutex_lock(&ray_mutex);
	ray_count++;
	pthread_mutex_unlock(&ray_mutex);
	HINT(pcs_exit());
}

static double brightness(struct vector at, struct vector normal, bool plainly)
{
	double light = 0.15;
	for (int i = 0; i < 2; i++) {
		struct vector to = minus(lamps[i], at);
		double distance = sqrt(dot(to, to));
		struct ray r = {at, scaled(1 / distance, to)};
		double slope = dot(normal, r.along);
		number_ray(plainly);
		if (slope > 0 && meet(&r, plainly).distance >= distance)
			light += 0.6 * slope;
	}
	return light;
}

static struct vector trace(const struct ray *r, int bounces, bool plainly)
{
	number_ray(plainly);
	struct hit h = meet(r, plainly);
	if (h.distance == INFINITY)
		return (struct vector){0.3, 0.4, 0.5 + 0.3 * r->along.y};
	struct vector at = plus(r->from, scaled(h.distance, r->along));
	struct vector normal = {0, 1, 0}, colour = {0.9, 0.9, 0.9};
	double mirror = 0.1;
	if (h.ball >= 0) {
		const struct ball *b = &balls[h.ball];
		normal = unit_vector(minus(at, b->centre));
		colour = b->colour;
		mirror = b->mirror;
	} else if (((long)floor(at.x * 4) + (long)floor(at.z * 4)) % 2 != 0) {
		colour = (struct vector){0.2, 0.1, 0.1};
	}
	colour = scaled((1 - mirror) * brightness(at, normal, plainly), colour);
	if (bounces == MAX_BOUNCES)
		return colour;
	struct ray reflected = {at, minus(r->along, scaled(2 * dot(r->along, normal), normal))};
	return plus(colour, scaled(mirror, trace(&reflected, bounces + 1, plainly)));
}

static unsigned char to_byte(double brightness)
{
	return fmin(255, fmax(0, 255 * brightness));
}

// draw computes the three bytes of a point of the picture.
static void draw(long point, unsigned char bytes[3], bool plainly)
{
	double x = (point % width + 0.5) / width, y = (point / width + 0.5) / width;
	struct ray r = {eye, unit_vector(minus((struct vector){x, 1 - y, 0}, eye))};
	struct vector colour = trace(&r, 0, plainly);
	bytes[0] = to_byte(colour.x);
	bytes[1] = to_byte(colour.y);
	bytes[2] = to_byte(colour.z);
}

static void draw_tiles(long id)
{
	long across = (width + TILE - 1) / TILE, drawn = 0, tile;
	task_queue_fill(id, threads, across * across);
	pthread_barrier_wait(&barrier);
	while ((tile = task_take(id, threads)) >= 0) {
		for (long y = tile / across * TILE; y < width && y < (tile / across + 1) * TILE; y++)
			for (long x = tile % across * TILE; x < width && x < (tile % across + 1) * TILE; x++)
				draw(y * width + x, &picture[3 * (y * width + x)], false);
		drawn++;
	}
	pthread_mutex_lock(&ray_mutex);
	tiles_drawn += drawn;
	pthread_mutex_unlock(&ray_mutex);
}

// check draws some points again, testing every ball for every ray.
static void check(void)
{
	long across = (width + TILE - 1) / TILE;
	if (tiles_drawn != across * across)
		wrong("%ld of %ld tiles were drawn", tiles_drawn, across * across);
	for (long point = 0; point < width * width; point += CHECKED) {
		unsigned char bytes[3];
		draw(point, bytes, true);
		if (memcmp(bytes, &picture[3 * point], 3) != 0)
			wrong("the point %ld, %ld has the wrong colour", point % width, point / width);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('w', "WIDTH", &width, 1, 4096),
		NUMBER('n', "BALLS", &ball_count, 0, MAX_BALLS),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	balls = allocate(ball_count, sizeof *balls);
	picture = allocate(width * width, 3);
	make_balls();
	fill_cells();
	task_queues_init(threads, (width / TILE + 1) * (width / TILE + 1));
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, draw_tiles);

	check();
	uint64_t digest = 0;
	for (long i = 0; i < 3 * width * width; i++)
		digest_word(&digest, picture[i]);
	printf("raytrace: %ld by %ld points, %ld rays, digest %016llx, correct\n",
	       width, width, ray_count, (unsigned long long)digest);
	pthread_barrier_destroy(&barrier);
	task_queues_destroy(threads);
	for (long c = 0; c < CELLS * CELLS * CELLS; c++)
		free(cells[c].balls);
	free(balls);
	free(picture);
	return 0;
}
