// water-nsquared: molecular dynamics of water (water.h), every pair of molecules
// considered, after the description in Woo and others (1995).
//
// A thread owns a range of molecules and takes each of them together with the
// next n/2, so that every pair is taken once. It collects forces in memory of
// its own and then adds them to the molecules, each under its lock. The order
// of these additions depends on the interleaving, and so do the last digits.
#include "water.h"

static pthread_mutex_t *molecule_mutexes;
static pthread_mutex_t sum_mutex = PTHREAD_MUTEX_INITIALIZER;
static double potential, kinetic, first_energy;
static pthread_barrier_t barrier;

// collect computes the forces of the thread's pairs into own, by molecule, and
// returns the potential energy.
static double collect(double (*own)[SITES][3], long first, long end)
{
	double energy = 0;
	for (long i = first; i < end; i++) {
		energy += within(&molecules[i], own[i]);
		// For even n, the molecule opposite is taken from one side only.
		long partners = (n - 1) / 2 + (n % 2 == 0 && i < n / 2);
		for (long k = 1; k <= partners; k++) {
			long j = (i + k) % n;
			energy += between(&molecules[i], &molecules[j], own[i], own[j]);
		}
	}
	return energy;
}

static void add_force(long i, double force[SITES][3])
{
	pthread_mutex_lock(&molecule_mutexes[i]);
	for (int s = 0; s < SITES; s++)
		for (int k = 0; k < 3; k++)
			molecules[i].force[s][k] += force[s][k];
	pthread_mutex_unlock(&molecule_mutexes[i]);
}

static void compute_forces(long id, double (*own)[SITES][3])
{
	long first = share_start(n, threads, id), end = share_start(n, threads, id + 1);
	for (long i = first; i < end; i++)
		memset(molecules[i].force, 0, sizeof molecules[i].force);
	if (id == 0)
		potential = kinetic = 0;
	pthread_barrier_wait(&barrier);
	memset(own, 0, n * sizeof *own);
	double energy = collect(own, first, end);
	long touched = first == end ? 0 : end - first + n / 2;
	for (long k = 0; k < touched && k < n; k++)
		add_force((first + k) % n, own[(first + k) % n]);
	pthread_mutex_lock(&sum_mutex);
	potential += energy;
	pthread_mutex_unlock(&sum_mutex);
	pthread_barrier_wait(&barrier);
}

static void sum_kinetic(long first, long end)
{
	double sum = 0;
	for (long i = first; i < end; i++)
		sum += kinetic_energy(&molecules[i]);
	pthread_mutex_lock(&sum_mutex);
	kinetic += sum;
	pthread_mutex_unlock(&sum_mutex);
	pthread_barrier_wait(&barrier);
}

static void work(long id)
{
	long first = share_start(n, threads, id), end = share_start(n, threads, id + 1);
	double (*own)[SITES][3] = allocate(n, sizeof *own);
	compute_forces(id, own);
	sum_kinetic(first, end);
	if (id == 0)
		first_energy = potential + kinetic;
	for (long s = 0; s < steps; s++) {
		for (long i = first; i < end; i++) {
			kick(&molecules[i]);
			drift(&molecules[i]);
		}
		pthread_barrier_wait(&barrier);
		compute_forces(id, own);
		for (long i = first; i < end; i++)
			kick(&molecules[i]);
		sum_kinetic(first, end);
	}
	free(own);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "MOLECULES", &n, 27, 100000),
		NUMBER('t', "STEPS", &steps, 1, 1000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	molecules = allocate(n, sizeof *molecules);
	molecule_mutexes = allocate(n, sizeof *molecule_mutexes);
	for (long i = 0; i < n; i++)
		pthread_mutex_init(&molecule_mutexes[i], NULL);
	make_molecules();
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, work);

	check("water-nsquared", first_energy, potential);
	pthread_barrier_destroy(&barrier);
	for (long i = 0; i < n; i++)
		pthread_mutex_destroy(&molecule_mutexes[i]);
	free(molecule_mutexes);
	free(molecules);
	return 0;
}
