// fft: the complex one-dimensional fast Fourier transform by the six-step
// method of Bailey (1990), which treats the n points as a square matrix.
//
// Each thread owns a set of adjacent rows. Transpositions are blocked, and a
// thread starts with the block that it owns itself and continues with those of
// its successors, so that no two threads read one block at once. Points, roots
// and scratch space are written by their owners only; barriers separate the
// steps.
#include "suite.h"

enum { BLOCK = 8 }; // side of a transposed block

struct point {
	double re, im;
};

static long threads = 4, log2n = 10, seed = 1;
static long n, side, log2side;
static struct point *points, *scratch, *input, *roots; // roots[k] = exp(-2 pi i k / n)
static pthread_barrier_t barrier;

static pthread_mutex_t id_mutex = PTHREAD_MUTEX_INITIALIZER;
static long next_id;
static double initdonetime, finishtime;

static struct point times(struct point a, struct point b)
{
	return (struct point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct point plus(struct point a, struct point b)
{
	return (struct point){a.re + b.re, a.im + b.im};
}

static struct point minus(struct point a, struct point b)
{
	return (struct point){a.re - b.re, a.im - b.im};
}

static double size(struct point a)
{
	return sqrt(a.re * a.re + a.im * a.im);
}

static long first_row(long id)
{
	return share_start(side, threads, id);
}

static void fill(long id)
{
	const double pi = 3.14159265358979323846;
	for (long i = first_row(id) * side; i < first_row(id + 1) * side; i++) {
		input[i].re = points[i].re = unit(random_at(seed, 2 * i)) - 0.5;
		input[i].im = points[i].im = unit(random_at(seed, 2 * i + 1)) - 0.5;
		roots[i].re = cos(2 * pi * i / n);
		roots[i].im = -sin(2 * pi * i / n);
	}
}

static void transpose_block(struct point *to, const struct point *from, long row, long column, long end_row, long end_column)
{
	for (long i = row; i < row + BLOCK && i < end_row; i++)
		for (long j = column; j < column + BLOCK && j < end_column; j++)
			to[i * side + j] = from[j * side + i];
}

// transpose writes the thread's rows of the transposed matrix.
static void transpose(struct point *to, const struct point *from, long id)
{
	long end_row = first_row(id + 1);
	for (long k = 0; k < threads; k++) {
		long other = (id + k) % threads;
		long end_column = first_row(other + 1);
		for (long i = first_row(id); i < end_row; i += BLOCK)
			for (long j = first_row(other); j < end_column; j += BLOCK)
				transpose_block(to, from, i, j, end_row, end_column);
	}
}

static long reverse_bits(long k)
{
	long reversed = 0;
	for (long bit = 0; bit < log2side; bit++)
		reversed |= (k >> bit & 1) << (log2side - 1 - bit);
	return reversed;
}

// transform_row is the textbook radix-2 transform of a row in place.
static void transform_row(struct point *row)
{
	for (long k = 0; k < side; k++) {
		long r = reverse_bits(k);
		if (k < r) {
			struct point p = row[k];
			row[k] = row[r];
			row[r] = p;
		}
	}
	for (long half = 1; half < side; half *= 2) {
		long stride = n / (2 * half);
		for (long start = 0; start < side; start += 2 * half) {
			for (long k = 0; k < half; k++) {
				struct point even = row[start + k];
				struct point odd = times(row[start + k + half], roots[k * stride]);
				row[start + k] = plus(even, odd);
				row[start + k + half] = minus(even, odd);
			}
		}
	}
}

// transform leaves the transform of points in scratch.
static void transform(long id)
{
	transpose(scratch, points, id);
	for (long i = first_row(id); i < first_row(id + 1); i++) {
		transform_row(&scratch[i * side]);
		for (long j = 0; j < side; j++)
			scratch[i * side + j] = times(scratch[i * side + j], roots[i * j]);
	}
	pthread_barrier_wait(&barrier);
	transpose(points, scratch, id);
	for (long i = first_row(id); i < first_row(id + 1); i++)
		transform_row(&points[i * side]);
	pthread_barrier_wait(&barrier);
	transpose(scratch, points, id);
}

static void *work(void *unused)
{
	pthread_mutex_lock(&id_mutex);
	long id = next_id++;
	pthread_mutex_unlock(&id_mutex);
	HINT(soba_wait(HINT_START));
	fill(id);
	pthread_barrier_wait(&barrier);
	double initialised = now_seconds();
	transform(id);
	pthread_barrier_wait(&barrier);
	if (id == 0) {
		DELAY(30);
		initdonetime = initialised; // race: initdonetime
		finishtime = now_seconds(); // race: finishtime
	}
	return unused;
}

static void report_times(void)
{
	double begin = initdonetime; // race: initdonetime
	double end = finishtime; // race: finishtime
	if (begin == 0 || end < begin)
		wrong("the transform took from %f to %f", begin, end);
}

// check_bins compares some results with the definition of the transform.
static void check_bins(double tolerance)
{
	for (long k = 1; k < n; k += n / 4 + 1) {
		struct point sum = {0, 0};
		for (long j = 0; j < n; j++)
			sum = plus(sum, times(input[j], roots[j * k % n]));
		if (!(size(minus(sum, scratch[k])) <= tolerance))
			wrong("point %ld is %g%+gi, not %g%+gi", k, scratch[k].re, scratch[k].im, sum.re, sum.im);
	}
}

// check_weighted_sum compares the sum of all results X[k] a^k, for a just below
// 1, with its value by the definition of X and the geometric series.
static void check_weighted_sum(double tolerance)
{
	double a = 1 - 2.0 / n, power = 1;
	struct point got = {0, 0}, want = {0, 0};
	for (long k = 0; k < n; k++) {
		got = plus(got, (struct point){scratch[k].re * power, scratch[k].im * power});
		power *= a;
	}
	for (long j = 0; j < n; j++) {
		struct point d = {1 - a * roots[j].re, -a * roots[j].im};
		double scale = (1 - power) / (d.re * d.re + d.im * d.im);
		want = plus(want, times(input[j], (struct point){d.re * scale, -d.im * scale}));
	}
	if (!(size(minus(got, want)) <= tolerance * n / 10))
		wrong("the weighted sum is off by %g", size(minus(got, want)));
}

int main(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		NUMBER('m', "LOG2_POINTS", &log2n, 2, 24),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	};
	read_arguments(argc, argv, known);
	if (log2n % 2 != 0)
		usage_error(known);
	n = 1L << log2n;
	log2side = log2n / 2;
	side = 1L << log2side;
	points = allocate(n, sizeof *points);
	scratch = allocate(n, sizeof *scratch);
	input = allocate(n, sizeof *input);
	roots = allocate(n, sizeof *roots);
	pthread_barrier_init(&barrier, NULL, threads);
	HINT(soba_init(HINT_START, threads, 0));
	pthread_t others[MAX_THREADS];
	for (long i = 1; i < threads; i++)
		start_thread(&others[i], work, NULL);
	DELAY(10);
	work(NULL);
#ifdef BUGGY
	report_times();
#endif
	for (long i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
#ifndef BUGGY
	report_times();
#endif

	double tolerance = 1e-14 * log2n * side;
	check_bins(tolerance);
	check_weighted_sum(tolerance);
	printf("fft: %ld points, X[1] = %.6f%+.6fi, correct\n", n, scratch[1].re, scratch[1].im);
	pthread_barrier_destroy(&barrier);
	free(points);
	free(scratch);
	free(input);
	free(roots);
	return 0;
}
