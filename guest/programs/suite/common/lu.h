// Blocked dense LU factorization without pivoting, for lu-contig and
// lu-non-contig, which differ in where the blocks lie in memory.
//
// The n by n matrix is cut into square blocks, which belong to threads in a
// two-dimensional scatter. For each k, the owner of block (k, k) factors it;
// then the owners of the rest of column k and row k divide theirs by it; then
// all blocks below and to the right are updated by their owners. Barriers
// separate the first two phases from the next.
//
// The program defines block, which finds block (i, j), and stride, the distance
// of two rows of a block.
#ifndef LU_H
#define LU_H

#include "suite.h"

static long threads = 4, n = 64, side = 16, seed = 1;
static long blocks;               // in a row of the matrix
static long grid_rows, grid_cols; // of threads
static long stride;
static pthread_barrier_t barrier;

static double *block(long i, long j);

static long owner(long i, long j)
{
	return i % grid_rows * grid_cols + j % grid_cols;
}

static void arrange_threads(void)
{
	grid_rows = 1;
	for (long r = 1; r * r <= threads; r++)
		if (threads % r == 0)
			grid_rows = r;
	grid_cols = threads / grid_rows;
}

// original is element (i, j) of the matrix before factorization: random, and
// dominated by the diagonal, so that no pivoting is needed.
static double original(long i, long j)
{
	return unit(random_at(seed, i * n + j)) + (i == j ? n : 0);
}

static void fill_block(long bi, long bj)
{
	double *a = block(bi, bj);
	for (long i = 0; i < side; i++)
		for (long j = 0; j < side; j++)
			a[i * stride + j] = original(bi * side + i, bj * side + j);
}

// factor_block makes L and U, L with ones on its diagonal, of the block a.
static void factor_block(double *a)
{
	for (long k = 0; k < side; k++)
		for (long i = k + 1; i < side; i++) {
			double l = a[i * stride + k] /= a[k * stride + k];
			for (long j = k + 1; j < side; j++)
				a[i * stride + j] -= l * a[k * stride + j];
		}
}

// divide_by_upper solves X U = A for the U of the factored block d.
static void divide_by_upper(double *a, const double *d)
{
	for (long i = 0; i < side; i++)
		for (long k = 0; k < side; k++) {
			double x = a[i * stride + k] /= d[k * stride + k];
			for (long j = k + 1; j < side; j++)
				a[i * stride + j] -= x * d[k * stride + j];
		}
}

// divide_by_lower solves L X = A for the L of the factored block d.
static void divide_by_lower(double *a, const double *d)
{
	for (long k = 0; k < side; k++)
		for (long i = k + 1; i < side; i++)
			for (long j = 0; j < side; j++)
				a[i * stride + j] -= d[i * stride + k] * a[k * stride + j];
}

// update subtracts the product of the blocks l and u from c.
static void update(double *c, const double *l, const double *u)
{
	for (long i = 0; i < side; i++)
		for (long k = 0; k < side; k++) {
			double factor = l[i * stride + k];
			for (long j = 0; j < side; j++)
				c[i * stride + j] -= factor * u[k * stride + j];
		}
}

static void factor_step(long id, long k)
{
	const double *diagonal = block(k, k);
	if (owner(k, k) == id)
		factor_block(block(k, k));
	pthread_barrier_wait(&barrier);
	for (long i = k + 1; i < blocks; i++) {
		if (owner(i, k) == id)
			divide_by_upper(block(i, k), diagonal);
		if (owner(k, i) == id)
			divide_by_lower(block(k, i), diagonal);
	}
	pthread_barrier_wait(&barrier);
	for (long i = k + 1; i < blocks; i++)
		for (long j = k + 1; j < blocks; j++)
			if (owner(i, j) == id)
				update(block(i, j), block(i, k), block(k, j));
}

// factor fills and factors the matrix together with the other threads.
static void factor(long id)
{
	for (long i = 0; i < blocks; i++)
		for (long j = 0; j < blocks; j++)
			if (owner(i, j) == id)
				fill_block(i, j);
	pthread_barrier_wait(&barrier);
	for (long k = 0; k < blocks; k++)
		factor_step(id, k);
	pthread_barrier_wait(&barrier);
}

static double element(long i, long j)
{
	return block(i / side, j / side)[i % side * stride + j % side];
}

// check_solution solves A x = b for a known x with the factors.
static void check_solution(void)
{
	double *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
	for (long i = 0; i < n; i++)
		x[i] = unit(random_at(seed + 1, i)) - 0.5;
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			y[i] += original(i, j) * x[j];
	for (long i = 0; i < n; i++)
		for (long j = 0; j < i; j++)
			y[i] -= element(i, j) * y[j];
	for (long i = n - 1; i >= 0; i--) {
		for (long j = i + 1; j < n; j++)
			y[i] -= element(i, j) * y[j];
		y[i] /= element(i, i);
	}
	for (long i = 0; i < n; i++)
		if (!(fabs(x[i] - y[i]) <= 1e-12 * n))
			wrong("unknown %ld is %g, not %g", i, y[i], x[i]);
	free(x);
	free(y);
}

static void report(void)
{
	uint64_t digest = 0;
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			digest_double(&digest, element(i, j));
	printf("lu: %ld by %ld in blocks of %ld, digest %016llx, correct\n",
	       n, n, side, (unsigned long long)digest);
}

static void read_sizes(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		NUMBER('n', "SIZE", &n, 1, 8192),
		NUMBER('b', "BLOCK", &side, 1, 512),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	};
	read_arguments(argc, argv, known);
	if (n % side != 0)
		usage_error(known);
	blocks = n / side;
	arrange_threads();
	pthread_barrier_init(&barrier, NULL, threads);
}

#endif
