// radiosity: the light in a closed room of matt surfaces by hierarchical
// radiosity (Hanrahan, Salzman and Aupperle, 1991; parallel structure after
// Singh and others, 1994).
//
// A surface is a tree of patches, split on demand. A patch gathers light over
// links from others, large or small depending on the light that they carry. A
// task is the gathering of one patch, and puts tasks for its parts into the
// queue of its thread; idle threads steal, or wait until there is a task to
// steal. Any thread may split any patch, under that one's lock. Light that is
// gathered is that of the iteration before, so results do not depend on the
// order of tasks.
#include "suite.h"

enum { MAX_SURFACES = 32, SIGHT_LINES = 9 };

struct vector {
	double x, y, z;
};

struct link {
	struct patch *from;
	double factor; // share of the patch's view that the other fills
	struct link *next;
};

struct patch {
	struct vector corner, edges[2], normal, centre;
	double area, emission, reflectance;
	double radiosity; // of the last iteration
	double gathered;  // over the patch's own links
	struct link *links;
	struct patch *parts; // four, or none
	struct patch *waiting; // next in a queue
	pthread_mutex_t mutex; // for parts
};

struct queue {
	pthread_mutex_t mutex;
	struct patch *first;
};

static long threads = 4, iterations = 6, fineness = 200;
static struct patch surfaces[MAX_SURFACES];
static long surface_count;
static struct queue queues[MAX_THREADS];
static pthread_mutex_t work_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_changed = PTHREAD_COND_INITIALIZER;
static long queued, unfinished; // tasks in queues; tasks there and in work
static double least_light, least_area;
static pthread_barrier_t barrier;

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

static struct vector cross(struct vector a, struct vector b)
{
	return (struct vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static struct vector place(const struct patch *p, double u, double v)
{
	return plus(p->corner, plus(scaled(u, p->edges[0]), scaled(v, p->edges[1])));
}

// shape sets the geometry of a patch, whose normal is that of its edges.
static void shape(struct patch *p, struct vector corner, struct vector edge0, struct vector edge1)
{
	struct vector normal = cross(edge0, edge1);
	p->corner = corner;
	p->edges[0] = edge0;
	p->edges[1] = edge1;
	p->area = sqrt(dot(normal, normal));
	p->normal = scaled(1 / p->area, normal);
	p->centre = place(p, 0.5, 0.5);
	pthread_mutex_init(&p->mutex, NULL);
}

static void add_surface(struct vector corner, struct vector edge0, struct vector edge1, double emission, double reflectance)
{
	struct patch *p = &surfaces[surface_count++];
	shape(p, corner, edge0, edge1);
	p->emission = p->radiosity = emission;
	p->reflectance = reflectance;
}

// add_box adds the faces of a box that stand on the floor, looking outwards.
static void add_box(double x, double z, double width, double height, double depth)
{
	struct vector right = {width, 0, 0}, up = {0, height, 0}, back = {0, 0, depth};
	add_surface((struct vector){x, 0, z}, up, right, 0, 0.5);
	add_surface((struct vector){x, 0, z + depth}, right, up, 0, 0.5);
	add_surface((struct vector){x, 0, z}, back, up, 0, 0.5);
	add_surface((struct vector){x + width, 0, z}, up, back, 0, 0.5);
	add_surface((struct vector){x, height, z}, back, right, 0, 0.5);
}

// furnish makes a room with a lamp below the ceiling and two boxes.
static void furnish(void)
{
	struct vector right = {1, 0, 0}, up = {0, 1, 0}, back = {0, 0, 1}, zero = {0, 0, 0};
	add_surface(zero, back, right, 0, 0.4);
	add_surface(up, right, back, 0, 0.7);
	add_surface(zero, right, up, 0, 0.6);
	add_surface(back, up, right, 0, 0.6);
	add_surface(zero, up, back, 0, 0.5);
	add_surface(right, back, up, 0, 0.5);
	add_surface((struct vector){0.35, 0.98, 0.35}, scaled(0.3, right), scaled(0.3, back), 10, 0.1);
	add_surface((struct vector){0.35, 0.98, 0.35}, scaled(0.3, back), scaled(0.3, right), 0, 0.1);
	add_box(0.15, 0.2, 0.25, 0.5, 0.2);
	add_box(0.55, 0.5, 0.3, 0.3, 0.3);
}

// blocks reports whether a surface stands between two points.
static bool blocks(const struct patch *s, struct vector a, struct vector b)
{
	double side_a = dot(minus(a, s->corner), s->normal), side_b = dot(minus(b, s->corner), s->normal);
	if (side_a * side_b >= 0 || fabs(side_a) < 1e-9 || fabs(side_b) < 1e-9)
		return false;
	struct vector at = plus(a, scaled(side_a / (side_a - side_b), minus(b, a)));
	struct vector d = minus(at, s->corner);
	double u = dot(d, s->edges[0]) / dot(s->edges[0], s->edges[0]);
	double v = dot(d, s->edges[1]) / dot(s->edges[1], s->edges[1]);
	return u > 0 && u < 1 && v > 0 && v < 1;
}

// visibility is the share of lines of sight between two patches that no surface
// blocks.
static double visibility(const struct patch *a, const struct patch *b)
{
	int clear = 0;
	for (int line = 0; line < SIGHT_LINES; line++) {
		// A different place of b for each of a: a Latin square.
		int other = (line * 2 + line / 3) % SIGHT_LINES;
		struct vector from = place(a, (line % 3 + 0.5) / 3, (line / 3 + 0.5) / 3);
		struct vector to = place(b, (other % 3 + 0.5) / 3, (other / 3 + 0.5) / 3);
		bool blocked = false;
		for (long s = 0; s < surface_count && !blocked; s++)
			blocked = blocks(&surfaces[s], from, to);
		clear += !blocked;
	}
	return (double)clear / SIGHT_LINES;
}

// view_factor estimates the share of a's view that b fills, by taking b for a
// disk.
static double view_factor(const struct patch *a, const struct patch *b)
{
	const double pi = 3.14159265358979323846;
	double sum = 0;
	for (int k = 0; k < 4; k++) {
		struct vector d = minus(place(b, k % 2 ? 0.75 : 0.25, k / 2 ? 0.75 : 0.25), a->centre);
		double square = dot(d, d), near = dot(a->normal, d), far = -dot(b->normal, d);
		if (near > 0 && far > 0)
			sum += near * far / square * (b->area / 4) / (pi * square + b->area / 4);
	}
	return sum > 0 ? sum * visibility(a, b) : 0;
}

static void add_link(struct patch *to, struct patch *from)
{
	double factor = view_factor(to, from);
	if (factor <= 0)
		return;
	struct link *l = allocate(1, sizeof *l);
	*l = (struct link){from, factor, to->links};
	to->links = l;
}

// parts_of returns the four parts of a patch, which any thread may have made.
static struct patch *parts_of(struct patch *p, bool split)
{
	HINT(pcs_enter());
	pthread_mutex_lock(&p->mutex);
	if (p->parts == NULL && split) {
		p->parts = allocate(4, sizeof *p->parts);
		struct vector half[2] = {scaled(0.5, p->edges[0]), scaled(0.5, p->edges[1])};
		for (int k = 0; k < 4; k++) {
			shape(&p->parts[k], place(p, k % 2 * 0.5, k / 2 * 0.5), half[0], half[1]);
			p->parts[k].emission = p->emission;
			p->parts[k].reflectance = p->reflectance;
			p->parts[k].radiosity = p->radiosity;
		}
	}
	struct patch *parts = p->parts;
	pthread_mutex_unlock(&p->mutex);
	HINT(pcs_exit());
	return parts;
}

// refine replaces a link that carries much light by links of parts of one of
// its ends. It reports whether it did.
static bool refine(struct patch *to, const struct link *l)
{
	if (l->factor * l->from->radiosity * to->area < least_light)
		return false;
	bool split_from = l->from->area > to->area;
	if ((split_from ? l->from->area : to->area) < least_area)
		return false;
	struct patch *parts = parts_of(split_from ? l->from : to, true);
	for (int k = 0; k < 4; k++) {
		if (split_from)
			add_link(to, &parts[k]);
		else
			add_link(&parts[k], l->from);
	}
	return true;
}

static void put(long id, struct patch *p)
{
	struct queue *q = &queues[id];
	HINT(pcs_enter());
	pthread_mutex_lock(&q->mutex);
	p->waiting = q->first;
	q->first = p;
	pthread_mutex_unlock(&q->mutex);
	pthread_mutex_lock(&work_mutex);
	queued++;
	unfinished++;
	pthread_cond_signal(&work_changed);
	pthread_mutex_unlock(&work_mutex);
	HINT(pcs_exit());
}

static struct patch *take_from(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	struct patch *p = q->first;
	if (p)
		q->first = p->waiting;
	pthread_mutex_unlock(&q->mutex);
	return p;
}

// take waits for a task; NULL means that all are finished.
static struct patch *take(long id)
{
	HINT(pcs_enter());
	pthread_mutex_lock(&work_mutex);
	while (queued == 0 && unfinished > 0)
		pthread_cond_wait(&work_changed, &work_mutex);
	bool some = queued > 0;
	if (some)
		queued--;
	pthread_mutex_unlock(&work_mutex);
	// One of the tasks in the queues is now this thread's.
	for (long k = 0; some; k++) {
		struct patch *p = take_from(&queues[(id + k) % threads]);
		if (p) {
			HINT(pcs_exit());
			return p;
		}
	}
	HINT(pcs_exit());
	return NULL;
}

static void finish(void)
{
	HINT(pcs_enter());
	pthread_mutex_lock(&work_mutex);
	if (--unfinished == 0)
		pthread_cond_broadcast(&work_changed);
	pthread_mutex_unlock(&work_mutex);
	HINT(pcs_exit());
}

// gather refines the patch's links and collects the light that they carry.
static void gather(long id, struct patch *p)
{
	struct link *todo = p->links, *kept = NULL;
	p->links = NULL;
	p->gathered = 0;
	while (todo) {
		struct link *l = todo;
		todo = l->next;
		if (refine(p, l)) {
			free(l);
		} else {
			p->gathered += p->reflectance * l->factor * l->from->radiosity;
			l->next = kept;
			kept = l;
		}
		// Links that refining has made are next.
		while (p->links) {
			struct link *made = p->links;
			p->links = made->next;
			made->next = todo;
			todo = made;
		}
	}
	p->links = kept;
	struct patch *parts = parts_of(p, false);
	for (int k = 0; parts && k < 4; k++)
		put(id, &parts[k]);
}

// spread sets the radiosity of a patch and its parts from the light gathered by
// them and by the patches that they belong to. It returns that of the patch.
static double spread(struct patch *p, double from_above)
{
	double gathered = from_above + p->gathered, sum = 0;
	for (int k = 0; p->parts && k < 4; k++)
		sum += spread(&p->parts[k], gathered) / 4;
	return p->radiosity = p->parts ? sum : p->emission + gathered;
}

static void work(long id)
{
	for (long i = id; i < surface_count; i += threads)
		for (long k = 0; k < surface_count; k++)
			if (k != i)
				add_link(&surfaces[i], &surfaces[k]);
	for (long iteration = 0; iteration < iterations; iteration++) {
		for (long i = id; i < surface_count; i += threads)
			put(id, &surfaces[i]);
		pthread_barrier_wait(&barrier);
		for (struct patch *p; (p = take(id)) != NULL;) {
			gather(id, p);
			finish();
		}
		pthread_barrier_wait(&barrier);
		for (long i = id; i < surface_count; i += threads)
			spread(&surfaces[i], 0);
		pthread_barrier_wait(&barrier);
	}
}

// The sums of the check over all smallest patches.
struct totals {
	double emitted, absorbed, worst_change, view, area;
	long patches, links;
};

// check compares the radiosity of the smallest patches with the light that
// reaches them.
static void check(const struct patch *p, double light_above, double view_above, struct totals *t)
{
	double light = light_above, view = view_above, area = 0;
	t->patches++;
	for (const struct link *l = p->links; l; l = l->next) {
		light += p->reflectance * l->factor * l->from->radiosity;
		view += l->factor;
		t->links++;
	}
	for (int k = 0; p->parts && k < 4; k++) {
		check(&p->parts[k], light, view, t);
		area += p->parts[k].area;
	}
	if (p->parts) {
		if (!(fabs(area - p->area) <= 1e-9))
			wrong("a patch of area %g has parts of area %g", p->area, area);
		return;
	}
	t->emitted += p->emission * p->area;
	t->absorbed += (1 - p->reflectance) * (p->radiosity - p->emission) / p->reflectance * p->area;
	t->view += view * p->area;
	t->area += p->area;
	t->worst_change = fmax(t->worst_change, fabs(p->emission + light - p->radiosity));
}

// check_totals verifies that the light has converged, that the view factors of
// each patch add up to 1, and that all light of the lamp is absorbed. The last
// two hold within the error of the disks for adjacent walls.
static void check_totals(const struct totals *t)
{
	if (!(t->worst_change <= 2 * pow(0.5, iterations)))
		wrong("a patch is off by %g", t->worst_change);
	double view = t->view / t->area, kept = t->absorbed / t->emitted;
	if (!(view > 0.75 && view < 1.05))
		wrong("patches see %g of the room", view);
	if (!(kept > 0.75 && kept < 1.05))
		wrong("%g of the light is absorbed", kept);
}

static void clean_up(struct patch *p)
{
	for (struct link *l = p->links, *next; l; l = next) {
		next = l->next;
		free(l);
	}
	for (int k = 0; p->parts && k < 4; k++)
		clean_up(&p->parts[k]);
	free(p->parts);
	pthread_mutex_destroy(&p->mutex);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('i', "ITERATIONS", &iterations, 4, 100),
		NUMBER('f', "FINENESS", &fineness, 100, 1000000),
		{0},
	});
	least_light = 2.0 / fineness;
	least_area = 1.0 / fineness;
	furnish();
	for (long i = 0; i < threads; i++)
		pthread_mutex_init(&queues[i].mutex, NULL);
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, work);

	struct totals t = {0};
	for (long i = 0; i < surface_count; i++)
		check(&surfaces[i], 0, 0, &t);
	check_totals(&t);
	printf("radiosity: %ld patches, %ld links, emitted %.4f, absorbed %.4f, correct\n",
	       t.patches, t.links, t.emitted, t.absorbed);
	pthread_barrier_destroy(&barrier);
	for (long i = 0; i < threads; i++)
		pthread_mutex_destroy(&queues[i].mutex);
	for (long i = 0; i < surface_count; i++)
		clean_up(&surfaces[i]);
	return 0;
}
