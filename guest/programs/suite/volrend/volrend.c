// volrend: pictures of a volume of densities by ray casting with a pyramid of
// maxima to skip empty space, and early ending of rays (Levoy, 1990; parallel
// structure after Nieh and Levoy, 1992).
//
// The threads make the volume, its opacities and the pyramid together, with
// barriers between. Each frame shows the volume from another side; its picture
// is cut into tiles, which threads take from queues of their own, or steal.
#include "taskqueue.h"

enum { TILE = 4, MAX_LEVELS = 10, CHECKED = 7 };

struct vector {
	double x, y, z;
};

// A level of the pyramid: the greatest opacity in each cube of 2^level samples.
struct level {
	long side;
	unsigned char *largest;
};

static long threads = 4, log2side = 4, frames = 3, seed = 1;
static long side, width;         // of the volume and of a picture
static unsigned char *densities; // of the samples
static struct level pyramid[MAX_LEVELS];
static unsigned char *picture;
static struct vector axes[3]; // right, down and into the picture, of length 1
static long tiles_drawn;
static pthread_mutex_t count_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static long tiles_across(void)
{
	return (width + TILE - 1) / TILE;
}

static unsigned char *at(unsigned char *cells, long length, long x, long y, long z)
{
	return &cells[(z * length + y) * length + x];
}

// density is that of a head: skin, bone, brain and two hollows, with noise.
static unsigned char density(long x, long y, long z)
{
	double u = (x + 0.5) / side * 2 - 1, v = (y + 0.5) / side * 2 - 1, w = (z + 0.5) / side * 2 - 1;
	double r = u * u / 0.64 + v * v / 0.81 + w * w / 0.7;
	double hollow = fmin((u - 0.3) * (u - 0.3), (u + 0.3) * (u + 0.3)) + (v - 0.2) * (v - 0.2) + (w + 0.6) * (w + 0.6);
	double noise = 10 * unit(random_at(seed, (z * side + y) * side + x));
	if (r > 1 || hollow < 0.03)
		return 0;
	if (r > 0.9)
		return 60 + noise;
	return r > 0.7 ? 200 + noise : 100 + noise;
}

// opacity is the share of light, in 255ths, that a sample of that density
// absorbs: nothing below the skin's density, most for bone.
static long opacity(long density)
{
	return density < 50 ? 0 : density > 150 ? 120 : density / 10;
}

static void fill(long id)
{
	for (long z = share_start(side, threads, id); z < share_start(side, threads, id + 1); z++)
		for (long y = 0; y < side; y++)
			for (long x = 0; x < side; x++)
				*at(densities, side, x, y, z) = density(x, y, z);
	pthread_barrier_wait(&barrier);
}

// fill_base gives each cube between eight samples their greatest opacity.
static void fill_base(long id)
{
	struct level *base = &pyramid[0];
	for (long z = share_start(base->side, threads, id); z < share_start(base->side, threads, id + 1); z++)
		for (long y = 0; y < base->side; y++)
			for (long x = 0; x < base->side; x++) {
				long most = 0;
				for (int k = 0; k < 8; k++) {
					long o = opacity(*at(densities, side, x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)));
					most = o > most ? o : most;
				}
				*at(base->largest, base->side, x, y, z) = most;
			}
	pthread_barrier_wait(&barrier);
}

static void fill_level(long id, const struct level *below, struct level *l)
{
	for (long z = share_start(l->side, threads, id); z < share_start(l->side, threads, id + 1); z++)
		for (long y = 0; y < l->side; y++)
			for (long x = 0; x < l->side; x++) {
				unsigned char *largest = at(l->largest, l->side, x, y, z);
				for (int k = 0; k < 8; k++) {
					long bx = 2 * x + (k & 1), by = 2 * y + (k >> 1 & 1), bz = 2 * z + (k >> 2);
					if (bx >= below->side || by >= below->side || bz >= below->side)
						continue;
					unsigned char one = *at(below->largest, below->side, bx, by, bz);
					*largest = one > *largest ? one : *largest;
				}
			}
	pthread_barrier_wait(&barrier);
}

// turn sets the axes of a frame: each turns the view by the angle of the
// 20-21-29 triangle around the vertical axis, which needs no sines and so no
// rounding.
static void turn(long frame)
{
	double c = 1, s = 0;
	for (long i = 0; i < frame; i++) {
		double old = c;
		c = (21 * c - 20 * s) / 29;
		s = (21 * s + 20 * old) / 29;
	}
	axes[0] = (struct vector){c, 0, s};
	axes[1] = (struct vector){0, 1, 0};
	axes[2] = (struct vector){-s, 0, c};
}

static double mixed(double a, double b, double share)
{
	return a + (b - a) * share;
}

// sample interpolates the density between the eight samples around a place.
static double sample(struct vector p)
{
	long x = p.x, y = p.y, z = p.z;
	double near[2];
	for (int k = 0; k < 2; k++) {
		double upper = mixed(*at(densities, side, x, y, z + k), *at(densities, side, x + 1, y, z + k), p.x - x);
		double lower = mixed(*at(densities, side, x, y + 1, z + k), *at(densities, side, x + 1, y + 1, z + k), p.x - x);
		near[k] = mixed(upper, lower, p.y - y);
	}
	return mixed(near[0], near[1], p.z - z);
}

static bool within(struct vector p)
{
	return p.x >= 0 && p.y >= 0 && p.z >= 0 && p.x < side - 1 && p.y < side - 1 && p.z < side - 1;
}

// empty_level finds the largest cube of the pyramid that holds the place and no
// opacity; -1 means that there is no such cube.
static long empty_level(struct vector p)
{
	long found = -1;
	for (long l = 0; l < log2side; l++) {
		struct level *level = &pyramid[l];
		if (*at(level->largest, level->side, (long)p.x >> l, (long)p.y >> l, (long)p.z >> l) > 0)
			break;
		found = l;
	}
	return found;
}

static bool same_cube(struct vector a, struct vector b, long level)
{
	return (long)a.x >> level == (long)b.x >> level && (long)a.y >> level == (long)b.y >> level &&
	       (long)a.z >> level == (long)b.z >> level;
}

// A ray starts at a point of the picture, before the volume.
struct ray {
	struct vector from, along;
};

static struct vector place(const struct ray *r, long step)
{
	return (struct vector){r->from.x + step * r->along.x, r->from.y + step * r->along.y, r->from.z + step * r->along.z};
}

// after_empty is the first step of the ray outside the empty cube that the
// given step is in.
static long after_empty(const struct ray *r, long step, long level)
{
	struct vector start = place(r, step), p;
	do
		p = place(r, ++step);
	while (within(p) && same_cube(start, p, level));
	return step;
}

// cast accumulates the samples along a ray, step by step. Plainly means without
// skipping empty space, for checking.
static unsigned char cast(long point, bool plainly)
{
	double u = (point % width + 0.5) - width / 2.0, v = (point / width + 0.5) - width / 2.0;
	struct ray r = {.along = axes[2]};
	r.from.x = side / 2.0 + u * axes[0].x + v * axes[1].x - side * axes[2].x;
	r.from.y = side / 2.0 + u * axes[0].y + v * axes[1].y - side * axes[2].y;
	r.from.z = side / 2.0 + u * axes[0].z + v * axes[1].z - side * axes[2].z;
	double light = 0, clear = 1;
	for (long step = 0; step < 2 * side && clear > 0.02;) {
		struct vector p = place(&r, step);
		if (!within(p)) {
			step++;
			continue;
		}
		long level = plainly ? -1 : empty_level(p);
		if (level >= 0) {
			step = after_empty(&r, step, level);
			continue;
		}
		double d = sample(p), held = opacity(d) / 255.0;
		light += clear * held * d;
		clear *= 1 - held;
		step++;
	}
	return fmin(255, light);
}

static void draw_tile(long tile)
{
	long left = tile % tiles_across() * TILE, upper = tile / tiles_across() * TILE;
	for (long y = upper; y < upper + TILE && y < width; y++)
		for (long x = left; x < left + TILE && x < width; x++)
			picture[y * width + x] = cast(y * width + x, false);
}

static void check_picture(void)
{
	if (tiles_drawn != tiles_across() * tiles_across())
		wrong("%ld tiles were drawn", tiles_drawn);
	for (long point = 0; point < width * width; point += CHECKED)
		if (picture[point] != cast(point, true))
			wrong("the point %ld, %ld has the wrong brightness", point % width, point / width);
}

static void draw_frame(long id, uint64_t *digest, long frame)
{
	long drawn = 0, tile;
	if (id == 0) {
		turn(frame);
		tiles_drawn = 0;
	}
	task_queue_fill(id, threads, tiles_across() * tiles_across());
	pthread_barrier_wait(&barrier);
	while ((tile = task_take(id, threads)) >= 0) {
		draw_tile(tile);
		drawn++;
	}
	pthread_mutex_lock(&count_mutex);
	tiles_drawn += drawn;
	pthread_mutex_unlock(&count_mutex);
	pthread_barrier_wait(&barrier);
	if (id == 0) {
		check_picture();
		for (long i = 0; i < width * width; i++)
			digest_word(digest, picture[i]);
	}
	pthread_barrier_wait(&barrier);
}

static void work(long id)
{
	uint64_t digest = 0;
	fill(id);
	fill_base(id);
	for (long l = 1; l < log2side; l++)
		fill_level(id, &pyramid[l - 1], &pyramid[l]);
	for (long frame = 0; frame < frames; frame++)
		draw_frame(id, &digest, frame);
	if (id == 0)
		printf("volrend: %ld samples, %ld frames of %ld by %ld points, digest %016llx, correct\n",
		       side * side * side, frames, width, width, (unsigned long long)digest);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('m', "LOG2_SIDE", &log2side, 2, MAX_LEVELS - 1),
		NUMBER('f', "FRAMES", &frames, 1, 1000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	side = 1L << log2side;
	width = side + side / 2;
	densities = allocate(side * side * side, 1);
	picture = allocate(width * width, 1);
	for (long l = 0; l < log2side; l++) {
		pyramid[l].side = ((side - 2) >> l) + 1;
		pyramid[l].largest = allocate(pyramid[l].side * pyramid[l].side * pyramid[l].side, 1);
	}
	task_queues_init(threads, tiles_across() * tiles_across());
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, work);

	pthread_barrier_destroy(&barrier);
	task_queues_destroy(threads);
	for (long l = 0; l < log2side; l++)
		free(pyramid[l].largest);
	free(densities);
	free(picture);
	return 0;
}
