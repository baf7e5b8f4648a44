// ocean: wind-driven eddies in a square basin: the barotropic vorticity
// equation, stepped in time, with a Poisson equation at each step that a
// red-black Gauss-Seidel multigrid method solves (Brandt, 1977; Arakawa, 1966).
//
// Threads form a two-dimensional grid and own rectangles of the basin, on every
// level of the multigrid. Barriers separate sweeps over the points of one
// colour; the largest residual is collected under a lock. Grids lie in memory
// either as one array (-l 1) or as an array of rows (-l 0).
#include "suite.h"

enum { MAX_LEVELS = 12, MAX_CYCLES = 40 };

// A square grid of points, its border included.
struct grid {
	long side;
	double *cells, **rows; // one of the two
};

// The part of a grid that belongs to a thread.
struct part {
	long first_row, end_row, first_column, end_column;
};

static long threads = 4, log2side = 5, steps = 2, layout = 1;
static long grid_rows, grid_columns; // of threads
static struct grid flow[MAX_LEVELS], source[MAX_LEVELS]; // laplacian(flow) = source, by level
static struct grid tendency;
static double largest; // residual, collected by all threads
static pthread_mutex_t largest_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static const double time_step = 0.002, beta = 5, viscosity = 5e-4, friction = 0.1, tolerance = 1e-7;

static double *at(const struct grid *g, long i, long j)
{
	return layout == 1 ? &g->cells[i * g->side + j] : &g->rows[i][j];
}

static void make_grid(struct grid *g, long side)
{
	g->side = side;
	if (layout == 1) {
		g->cells = allocate(side * side, sizeof *g->cells);
		return;
	}
	g->rows = allocate(side, sizeof *g->rows);
	for (long i = 0; i < side; i++)
		g->rows[i] = allocate(side, sizeof *g->rows[i]);
}

static void free_grid(struct grid *g)
{
	for (long i = 0; layout == 0 && i < g->side; i++)
		free(g->rows[i]);
	free(g->rows);
	free(g->cells);
}

static struct part part_of(long id, long side)
{
	long row = id / grid_columns, column = id % grid_columns, inner = side - 2;
	return (struct part){
		1 + share_start(inner, grid_rows, row), 1 + share_start(inner, grid_rows, row + 1),
		1 + share_start(inner, grid_columns, column), 1 + share_start(inner, grid_columns, column + 1),
	};
}

static double laplacian(const struct grid *g, long i, long j)
{
	double per_square = (double)(g->side - 1) * (g->side - 1);
	return (*at(g, i - 1, j) + *at(g, i + 1, j) + *at(g, i, j - 1) + *at(g, i, j + 1) - 4 * *at(g, i, j)) * per_square;
}

static double residual(long level, long i, long j)
{
	return *at(&source[level], i, j) - laplacian(&flow[level], i, j);
}

// sweep relaxes the points of one colour in the thread's part.
static void sweep(long id, long level, long colour)
{
	struct grid *u = &flow[level];
	double square = 1.0 / ((double)(u->side - 1) * (u->side - 1));
	struct part p = part_of(id, u->side);
	for (long i = p.first_row; i < p.end_row; i++)
		for (long j = p.first_column + (i + p.first_column + colour) % 2; j < p.end_column; j += 2)
			*at(u, i, j) = (*at(u, i - 1, j) + *at(u, i + 1, j) + *at(u, i, j - 1) + *at(u, i, j + 1) -
			                square * *at(&source[level], i, j)) / 4;
	pthread_barrier_wait(&barrier);
}

static void relax(long id, long level)
{
	for (int i = 0; i < 2; i++) {
		sweep(id, level, 0);
		sweep(id, level, 1);
	}
}

// coarsen makes the next level's problem: the residual, weighted over the nine
// points around each of its points, and a flow of zero.
static void coarsen(long id, long level)
{
	struct part p = part_of(id, flow[level - 1].side);
	for (long i = p.first_row; i < p.end_row; i++)
		for (long j = p.first_column; j < p.end_column; j++) {
			double sum = 0;
			for (long di = -1; di <= 1; di++)
				for (long dj = -1; dj <= 1; dj++)
					sum += residual(level, 2 * i + di, 2 * j + dj) * (2 - labs(di)) * (2 - labs(dj));
			*at(&source[level - 1], i, j) = sum / 16;
			*at(&flow[level - 1], i, j) = 0;
		}
	pthread_barrier_wait(&barrier);
}

// refine adds the coarser level's solution, interpolated.
static void refine(long id, long level)
{
	const struct grid *c = &flow[level - 1];
	struct part p = part_of(id, flow[level].side);
	for (long i = p.first_row; i < p.end_row; i++)
		for (long j = p.first_column; j < p.end_column; j++) {
			long up = i / 2, down = (i + 1) / 2, left = j / 2, right = (j + 1) / 2;
			*at(&flow[level], i, j) += (*at(c, up, left) + *at(c, up, right) + *at(c, down, left) + *at(c, down, right)) / 4;
		}
	pthread_barrier_wait(&barrier);
}

// cycle is one V-cycle of the multigrid method.
static void cycle(long id, long level)
{
	relax(id, level);
	if (level == 1)
		return;
	coarsen(id, level);
	cycle(id, level - 1);
	refine(id, level);
	relax(id, level);
}

// largest_residual is the greatest one on the finest grid.
static double largest_residual(long id)
{
	double mine = 0;
	struct part p = part_of(id, flow[log2side].side);
	for (long i = p.first_row; i < p.end_row; i++)
		for (long j = p.first_column; j < p.end_column; j++)
			mine = fmax(mine, fabs(residual(log2side, i, j)));
	pthread_mutex_lock(&largest_mutex);
	largest = fmax(largest, mine);
	pthread_mutex_unlock(&largest_mutex);
	pthread_barrier_wait(&barrier);
	double all = largest;
	pthread_barrier_wait(&barrier);
	if (id == 0)
		largest = 0;
	return all;
}

static void solve(long id)
{
	for (int i = 0; largest_residual(id) > tolerance; i++) {
		if (i == MAX_CYCLES)
			wrong("no solution after %d cycles", i);
		cycle(id, log2side);
	}
}

// jacobian is Arakawa's form of the advection of vorticity by the flow, which
// keeps energy and enstrophy.
static double jacobian(long i, long j)
{
	const struct grid *p = &flow[log2side], *z = &source[log2side];
	double n = *at(p, i - 1, j), s = *at(p, i + 1, j), w = *at(p, i, j - 1), e = *at(p, i, j + 1);
	double nw = *at(p, i - 1, j - 1), ne = *at(p, i - 1, j + 1), sw = *at(p, i + 1, j - 1), se = *at(p, i + 1, j + 1);
	double zn = *at(z, i - 1, j), zs = *at(z, i + 1, j), zw = *at(z, i, j - 1), ze = *at(z, i, j + 1);
	double znw = *at(z, i - 1, j - 1), zne = *at(z, i - 1, j + 1), zsw = *at(z, i + 1, j - 1), zse = *at(z, i + 1, j + 1);
	double crosses = (s - n) * (ze - zw) - (e - w) * (zs - zn);
	double flow_outside = s * (zse - zsw) - n * (zne - znw) - e * (zse - zne) + w * (zsw - znw);
	double vorticity_outside = ze * (se - ne) - zw * (sw - nw) - zs * (se - sw) + zn * (ne - nw);
	double per_square = (double)(p->side - 1) * (p->side - 1);
	return (crosses + flow_outside + vorticity_outside) * per_square / 12;
}

// step moves the vorticity on by one time step.
static void step(long id)
{
	struct grid *vorticity = &source[log2side], *p = &flow[log2side];
	double spacing = 1.0 / (p->side - 1);
	struct part own = part_of(id, p->side);
	for (long i = own.first_row; i < own.end_row; i++)
		for (long j = own.first_column; j < own.end_column; j++) {
			double y = i * spacing, wind = 40 * y * (1 - y) * (y - 0.5);
			double slope = (*at(p, i, j + 1) - *at(p, i, j - 1)) / (2 * spacing);
			*at(&tendency, i, j) = wind - jacobian(i, j) - beta * slope +
				viscosity * laplacian(vorticity, i, j) - friction * *at(vorticity, i, j);
		}
	pthread_barrier_wait(&barrier);
	for (long i = own.first_row; i < own.end_row; i++)
		for (long j = own.first_column; j < own.end_column; j++)
			*at(vorticity, i, j) += time_step * *at(&tendency, i, j);
	pthread_barrier_wait(&barrier);
}

static void fill(long id)
{
	struct part own = part_of(id, source[log2side].side);
	double spacing = 1.0 / (source[log2side].side - 1);
	for (long i = own.first_row; i < own.end_row; i++)
		for (long j = own.first_column; j < own.end_column; j++) {
			double x = j * spacing, y = i * spacing;
			*at(&source[log2side], i, j) = 100 * x * (1 - x) * y * (1 - y) * (x + 2 * y - 1.5);
		}
	pthread_barrier_wait(&barrier);
}

static void work(long id)
{
	fill(id);
	for (long s = 0; s < steps; s++) {
		solve(id);
		step(id);
	}
	solve(id);
}

// check verifies that the flow belongs to the vorticity and that advection
// neither makes nor destroys energy.
static void check(void)
{
	double energy = 0, total = 0;
	for (long i = 1; i < flow[log2side].side - 1; i++)
		for (long j = 1; j < flow[log2side].side - 1; j++) {
			if (!(fabs(residual(log2side, i, j)) <= tolerance))
				wrong("the residual at %ld, %ld is %g", i, j, residual(log2side, i, j));
			double change = *at(&flow[log2side], i, j) * jacobian(i, j);
			energy += change;
			total += fabs(change);
		}
	if (!(fabs(energy) <= 1e-10 * total))
		wrong("advection changes the energy by %g of %g", energy, total);
}

static void report(void)
{
	uint64_t digest = 0;
	for (long i = 0; i < flow[log2side].side; i++)
		for (long j = 0; j < flow[log2side].side; j++)
			digest_double(&digest, *at(&flow[log2side], i, j));
	printf("ocean: %ld by %ld points, %ld steps, digest %016llx, correct\n",
	       flow[log2side].side, flow[log2side].side, steps, (unsigned long long)digest);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('m', "LOG2_SIDE", &log2side, 2, MAX_LEVELS - 1),
		NUMBER('t', "STEPS", &steps, 1, 1000),
		NUMBER('l', "LAYOUT", &layout, 0, 1),
		{0},
	});
	grid_rows = 1;
	for (long r = 1; r * r <= threads; r++)
		if (threads % r == 0)
			grid_rows = r;
	grid_columns = threads / grid_rows;
	for (long level = 1; level <= log2side; level++) {
		make_grid(&flow[level], (1L << level) + 1);
		make_grid(&source[level], (1L << level) + 1);
	}
	make_grid(&tendency, (1L << log2side) + 1);
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, work);

	check();
	report();
	pthread_barrier_destroy(&barrier);
	for (long level = 1; level <= log2side; level++) {
		free_grid(&flow[level]);
		free_grid(&source[level]);
	}
	free_grid(&tendency);
	return 0;
}
