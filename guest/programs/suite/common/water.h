// Molecules for water-nsquared and water-spatial, which differ in how they find
// the pairs that interact.
//
// A molecule has three sites (oxygen, two hydrogens) that springs hold together.
// Sites of different molecules attract and repel by charge, oxygens also by a
// Lennard-Jones force; both are shifted so that they vanish at the cut-off,
// which is taken between oxygens. The box is periodic. Units: distance in
// diameters of an oxygen, its mass and the depth of its potential.
#ifndef WATER_H
#define WATER_H

#include "suite.h"

enum { SITES = 3 };

struct molecule {
	double position[SITES][3], velocity[SITES][3], force[SITES][3];
};

static long threads = 4, n = 64, steps = 3, seed = 1;
static struct molecule *molecules;
static double box; // side
static double cutoff;

static const double time_step = 0.0002;
static const double site_mass[SITES] = {1, 0.0625, 0.0625}, site_charge[SITES] = {-0.8, 0.4, 0.4};
static const double bond[SITES] = {0.32, 0.32, 0.5}; // lengths of 0-1, 0-2, 1-2
static const double stiffness = 2000;

// make_molecules puts the molecules on a cubic lattice, turned and moving at
// random, without total momentum.
static void make_molecules(void)
{
	long side = 1;
	while (side * side * side < n)
		side++;
	box = side * 1.1;
	cutoff = fmin(box / 3, 2.5) * 0.999;
	double momentum[3] = {0, 0, 0}, mass = 0;
	for (long i = 0; i < n; i++) {
		struct molecule *m = &molecules[i];
		uint64_t random = random_at(seed, i);
		double centre[3] = {i % side * 1.1, i / side % side * 1.1, i / side / side * 1.1};
		int axis = random_below(&random, 3), turn = random_below(&random, 2);
		for (int s = 0; s < SITES; s++)
			for (int k = 0; k < 3; k++) {
				m->position[s][k] = centre[k] + 0.02 * random_unit(&random);
				m->velocity[s][k] = random_unit(&random) - 0.5;
				momentum[k] += site_mass[s] * m->velocity[s][k];
			}
		for (int s = 1; s < SITES; s++) {
			m->position[s][axis] += turn ? 0.2 : -0.2;
			m->position[s][(axis + 1) % 3] += s == 1 ? 0.25 : -0.25;
		}
		for (int s = 0; s < SITES; s++)
			mass += site_mass[s];
	}
	for (long i = 0; i < n; i++)
		for (int s = 0; s < SITES; s++)
			for (int k = 0; k < 3; k++)
				molecules[i].velocity[s][k] -= momentum[k] / mass;
}

// to_image changes a difference of two coordinates into that to the nearest
// periodic image.
static double to_image(double d)
{
	return d - box * floor(d / box + 0.5);
}

static void push(double a[3], double b[3], const double d[3], double strength)
{
	for (int k = 0; k < 3; k++) {
		a[k] += strength * d[k];
		b[k] -= strength * d[k];
	}
}

static double length(const double d[3])
{
	return sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

// spring adds the force of the spring between sites s and t and returns its
// energy.
static double spring(const struct molecule *m, double force[SITES][3], int s, int t, double rest)
{
	double d[3];
	for (int k = 0; k < 3; k++)
		d[k] = m->position[s][k] - m->position[t][k];
	double r = length(d), stretch = r - rest;
	push(force[s], force[t], d, -stiffness * stretch / r);
	return stiffness * stretch * stretch / 2;
}

static double within(const struct molecule *m, double force[SITES][3])
{
	return spring(m, force, 0, 1, bond[0]) + spring(m, force, 0, 2, bond[1]) + spring(m, force, 1, 2, bond[2]);
}

// lennard_jones gives the potential of the oxygens at distance r and, through
// *slope, its derivative.
static double lennard_jones(double r, double *slope)
{
	double six = 1 / (r * r * r * r * r * r);
	*slope = -24 * (2 * six * six - six) / r;
	return 4 * (six * six - six);
}

// between adds the forces of two molecules on each other, and returns the
// energy.
static double between(const struct molecule *a, const struct molecule *b, double on_a[SITES][3], double on_b[SITES][3])
{
	double d[3], shift[3];
	for (int k = 0; k < 3; k++) {
		d[k] = a->position[0][k] - b->position[0][k];
		shift[k] = to_image(d[k]) - d[k];
		d[k] += shift[k];
	}
	double r = length(d);
	if (r >= cutoff)
		return 0;
	double slope, slope_at_cutoff;
	double energy = lennard_jones(r, &slope) - lennard_jones(cutoff, &slope_at_cutoff) - slope_at_cutoff * (r - cutoff);
	push(on_a[0], on_b[0], d, -(slope - slope_at_cutoff) / r);
	// The charges' forces decrease to 0 at the cut-off, by the square of
	// 1 - (r / cutoff)^2, which also acts on the oxygens.
	double near = 1 - r * r / (cutoff * cutoff), charges = 0;
	for (int s = 0; s < SITES; s++)
		for (int t = 0; t < SITES; t++) {
			double e[3];
			for (int k = 0; k < 3; k++)
				e[k] = a->position[s][k] - b->position[t][k] + shift[k];
			double apart = length(e), potential = site_charge[s] * site_charge[t] / apart;
			charges += potential;
			push(on_a[s], on_b[t], e, near * near * potential / (apart * apart));
		}
	push(on_a[0], on_b[0], d, charges * 4 * near / (cutoff * cutoff));
	return energy + charges * near * near;
}

// kick changes velocities by half a time step's forces.
static void kick(struct molecule *m)
{
	for (int s = 0; s < SITES; s++)
		for (int k = 0; k < 3; k++)
			m->velocity[s][k] += time_step / 2 * m->force[s][k] / site_mass[s];
}

static void drift(struct molecule *m)
{
	for (int s = 0; s < SITES; s++)
		for (int k = 0; k < 3; k++)
			m->position[s][k] += time_step * m->velocity[s][k];
}

static double kinetic_energy(const struct molecule *m)
{
	double sum = 0;
	for (int s = 0; s < SITES; s++)
		for (int k = 0; k < 3; k++)
			sum += site_mass[s] * m->velocity[s][k] * m->velocity[s][k] / 2;
	return sum;
}

// check_forces computes all forces again, pair by pair, and compares; it
// returns the potential energy.
static double check_forces(void)
{
	double (*force)[SITES][3] = allocate(n, sizeof *force), energy = 0, largest = 0, worst = 0;
	for (long i = 0; i < n; i++) {
		energy += within(&molecules[i], force[i]);
		for (long j = i + 1; j < n; j++)
			energy += between(&molecules[i], &molecules[j], force[i], force[j]);
	}
	for (long i = 0; i < n; i++)
		for (int s = 0; s < SITES; s++)
			for (int k = 0; k < 3; k++) {
				largest = fmax(largest, fabs(force[i][s][k]));
				worst = fmax(worst, fabs(force[i][s][k] - molecules[i].force[s][k]));
			}
	if (!(worst <= 1e-11 * largest))
		wrong("a force is off by %g; the largest is %g", worst, largest);
	free(force);
	return energy;
}

// check compares the final state with the laws of mechanics: forces that
// follow from the positions, no momentum, and the energy of the beginning.
static void check(const char *program, double first_energy, double potential)
{
	double kinetic = 0, momentum[3] = {0, 0, 0};
	for (long i = 0; i < n; i++) {
		kinetic += kinetic_energy(&molecules[i]);
		for (int s = 0; s < SITES; s++)
			for (int k = 0; k < 3; k++)
				momentum[k] += site_mass[s] * molecules[i].velocity[s][k];
	}
	if (!(length(momentum) <= 1e-10 * n))
		wrong("the momentum is %g", length(momentum));
	double exact = check_forces();
	if (!(fabs(exact - potential) <= 1e-10 * n))
		wrong("the potential energy is %.12g, not %.12g", potential, exact);
	double drift = fabs(kinetic + potential - first_energy);
	if (!(drift <= 1e-3 * (fabs(first_energy) + kinetic)))
		wrong("the energy went from %g to %g", first_energy, kinetic + potential);
	printf("%s: %ld molecules, %ld steps, kinetic energy %.6f, potential energy %.6f, correct\n",
	       program, n, steps, kinetic, potential);
}

#endif
