// water-spatial: molecular dynamics of water (water.h) with cells, after the
// description in Woo and others (1995).
//
// The box is cut into cells that are no smaller than the cut-off, so that a
// molecule interacts only with those of its own and the 26 cells around it.
// A thread owns a range of cells. Molecules that leave a cell are put into their
// new one under that one's lock. Cells keep their molecules in the order of
// their numbers, so that sums do not depend on the order of arrival.
#include "water.h"

struct cell {
	pthread_mutex_t mutex;
	long first; // molecule, -1 when empty
};

static struct cell *cells;
static long side, cell_count; // side cells in each direction
static long *next;            // molecule in the same cell
static double *energies;      // potential energy by molecule
static double potential, kinetic, first_energy;
static pthread_mutex_t sum_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static long cell_of(const struct molecule *m)
{
	long index[3];
	for (int k = 0; k < 3; k++) {
		long i = floor(m->position[0][k] / box * side);
		index[k] = (i % side + side) % side;
	}
	return (index[0] * side + index[1]) * side + index[2];
}

static void put(long cell, long molecule)
{
	struct cell *c = &cells[cell];
	pthread_mutex_lock(&c->mutex);
	long *place = &c->first;
	while (*place >= 0 && *place < molecule)
		place = &next[*place];
	next[molecule] = *place;
	*place = molecule;
	pthread_mutex_unlock(&c->mutex);
}

// take_leavers takes the molecules that have left a cell out of it, and returns
// them as a list.
static long take_leavers(long cell)
{
	struct cell *c = &cells[cell];
	long leavers = -1;
	pthread_mutex_lock(&c->mutex);
	for (long *place = &c->first; *place >= 0;) {
		long i = *place;
		if (cell_of(&molecules[i]) == cell) {
			place = &next[i];
			continue;
		}
		*place = next[i];
		next[i] = leavers;
		leavers = i;
	}
	pthread_mutex_unlock(&c->mutex);
	return leavers;
}

static void resettle(long first_cell, long end_cell)
{
	for (long c = first_cell; c < end_cell; c++)
		for (long i = take_leavers(c), after; i >= 0; i = after) {
			after = next[i];
			put(cell_of(&molecules[i]), i);
		}
	pthread_barrier_wait(&barrier);
}

// add_cell adds the forces of all molecules of a cell on molecule i.
static void add_cell(long i, long cell)
{
	double unused[SITES][3] = {{0}};
	for (long j = cells[cell].first; j >= 0; j = next[j])
		if (j != i)
			energies[i] += between(&molecules[i], &molecules[j], molecules[i].force, unused) / 2;
}

static void compute_force(long i, long cell)
{
	long x = cell / side / side, y = cell / side % side, z = cell % side;
	memset(molecules[i].force, 0, sizeof molecules[i].force);
	energies[i] = within(&molecules[i], molecules[i].force);
	for (long dx = side - 1; dx <= side + 1; dx++)
		for (long dy = side - 1; dy <= side + 1; dy++)
			for (long dz = side - 1; dz <= side + 1; dz++)
				add_cell(i, ((x + dx) % side * side + (y + dy) % side) * side + (z + dz) % side);
}

static void compute_forces(long first_cell, long end_cell)
{
	double sum = 0;
	for (long c = first_cell; c < end_cell; c++)
		for (long i = cells[c].first; i >= 0; i = next[i]) {
			compute_force(i, c);
			sum += energies[i];
		}
	pthread_mutex_lock(&sum_mutex);
	potential += sum;
	pthread_mutex_unlock(&sum_mutex);
	pthread_barrier_wait(&barrier);
}

static void finish_step(long id, long first_cell, long end_cell, bool initial)
{
	double sum = 0;
	for (long c = first_cell; c < end_cell; c++)
		for (long i = cells[c].first; i >= 0; i = next[i]) {
			if (!initial)
				kick(&molecules[i]);
			sum += kinetic_energy(&molecules[i]);
		}
	pthread_mutex_lock(&sum_mutex);
	kinetic += sum;
	pthread_mutex_unlock(&sum_mutex);
	pthread_barrier_wait(&barrier);
	if (id == 0 && initial)
		first_energy = potential + kinetic;
}

static void start_step(long id, long first_cell, long end_cell)
{
	if (id == 0)
		potential = kinetic = 0;
	for (long c = first_cell; c < end_cell; c++)
		for (long i = cells[c].first; i >= 0; i = next[i]) {
			kick(&molecules[i]);
			drift(&molecules[i]);
		}
	pthread_barrier_wait(&barrier);
}

static void work(long id)
{
	long first = share_start(cell_count, threads, id), end = share_start(cell_count, threads, id + 1);
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		put(cell_of(&molecules[i]), i);
	pthread_barrier_wait(&barrier);
	compute_forces(first, end);
	finish_step(id, first, end, true);
	for (long s = 0; s < steps; s++) {
		start_step(id, first, end);
		resettle(first, end);
		compute_forces(first, end);
		finish_step(id, first, end, false);
	}
}

static double sum_energies(void)
{
	double sum = 0;
	for (long i = 0; i < n; i++)
		sum += energies[i];
	return sum;
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "MOLECULES", &n, 27, 1000000),
		NUMBER('t', "STEPS", &steps, 1, 1000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	molecules = allocate(n, sizeof *molecules);
	next = allocate(n, sizeof *next);
	energies = allocate(n, sizeof *energies);
	make_molecules();
	side = floor(box / cutoff);
	cell_count = side * side * side;
	cells = allocate(cell_count, sizeof *cells);
	for (long i = 0; i < cell_count; i++) {
		pthread_mutex_init(&cells[i].mutex, NULL);
		cells[i].first = -1;
	}
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, work);

	check("water-spatial", first_energy, sum_energies());
	pthread_barrier_destroy(&barrier);
	for (long i = 0; i < cell_count; i++)
		pthread_mutex_destroy(&cells[i].mutex);
	free(cells);
	free(energies);
	free(next);
	free(molecules);
	return 0;
}
