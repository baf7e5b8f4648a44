// cholesky: sparse Cholesky factorization by supernodes, without fill-reducing
// pivoting at run time (Rothberg and Gupta, 1991; Ng and Peyton, 1993).
//
// The matrix is the five-point Laplacian of a square grid, its unknowns ordered
// by nested dissection. A supernode is a run of columns with the same rows
// below the diagonal. A thread takes a supernode from its own queue, factors
// it, and subtracts its products from the supernodes to the right, each under
// that one's lock; the thread that makes the last subtraction puts the supernode
// into its owner's queue. A thread with an empty queue pauses.
#include "suite.h"

struct supernode {
	long first, width; // columns
	long height;       // rows, the columns' own first
	long *rows;        // row numbers in increasing order
	double *values;    // column by column, height each
	pthread_mutex_t mutex;
	long missing; // supernodes that have not yet been subtracted
	long next;    // in a queue
};

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	long head;  // -1 when empty
	long owned; // supernodes that belong to the thread
};

static long threads = 4, grid = 15, max_width = 8;
static long n; // unknowns: grid * grid
static long *order;    // unknown at a point of the grid
static long *point_of; // the inverse
static long *parent;   // in the elimination tree
static long **below;   // rows of a column, below the diagonal
static long *below_count;
static struct supernode *supernodes;
static long supernode_count;
static long *supernode_of; // by column
static struct queue queues[MAX_THREADS];
static pthread_barrier_t barrier;

// dissect numbers a rectangle of the grid: both halves first, then the line
// that separates them.
static long dissect(long row, long column, long rows, long columns, long next)
{
	if (rows <= 2 || columns <= 2) {
		for (long i = 0; i < rows; i++)
			for (long j = 0; j < columns; j++)
				order[(row + i) * grid + column + j] = next++;
		return next;
	}
	if (rows > columns) {
		long half = rows / 2;
		next = dissect(row, column, half, columns, next);
		next = dissect(row + half + 1, column, rows - half - 1, columns, next);
		return dissect(row + half, column, 1, columns, next);
	}
	long half = columns / 2;
	next = dissect(row, column, rows, half, next);
	next = dissect(row, column + half + 1, rows, columns - half - 1, next);
	return dissect(row, column + half, rows, 1, next);
}

// neighbours lists the unknowns next to an unknown and returns their number.
static long neighbours(long unknown, long list[4])
{
	long point = point_of[unknown], row = point / grid, column = point % grid, count = 0;
	if (row > 0)
		list[count++] = order[point - grid];
	if (row < grid - 1)
		list[count++] = order[point + grid];
	if (column > 0)
		list[count++] = order[point - 1];
	if (column < grid - 1)
		list[count++] = order[point + 1];
	return count;
}

static double matrix_element(long i, long j)
{
	return i == j ? 4.01 : -1;
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

// find_structure computes the rows of each column of the factor: those of the
// matrix and those of its children in the elimination tree.
static void find_structure(void)
{
	long *seen = allocate(n, sizeof *seen), *list = allocate(n, sizeof *list);
	long *first_child = allocate(n, sizeof *first_child), *sibling = allocate(n, sizeof *sibling);
	memset(first_child, -1, n * sizeof *first_child);
	for (long j = 0; j < n; j++) {
		long count = 0, adjacent[4];
		seen[j] = j + 1;
		for (long k = neighbours(j, adjacent); k-- > 0;) {
			if (adjacent[k] > j) {
				seen[adjacent[k]] = j + 1;
				list[count++] = adjacent[k];
			}
		}
		for (long c = first_child[j]; c >= 0; c = sibling[c])
			for (long k = 0; k < below_count[c]; k++)
				if (seen[below[c][k]] != j + 1) {
					seen[below[c][k]] = j + 1;
					list[count++] = below[c][k];
				}
		qsort(list, count, sizeof *list, compare);
		below[j] = allocate(count, sizeof *list);
		memcpy(below[j], list, count * sizeof *list);
		below_count[j] = count;
		parent[j] = count > 0 ? list[0] : -1;
		if (parent[j] >= 0) {
			sibling[j] = first_child[parent[j]];
			first_child[parent[j]] = j;
		}
	}
	free(seen);
	free(list);
	free(first_child);
	free(sibling);
}

// joins reports whether column j belongs to the same supernode as column j-1.
static bool joins(long j)
{
	return parent[j - 1] == j && below_count[j] == below_count[j - 1] - 1;
}

static void make_supernode(long first, long width)
{
	struct supernode *s = &supernodes[supernode_count];
	s->first = first;
	s->width = width;
	long last = first + width - 1;
	s->height = width + below_count[last];
	s->rows = allocate(s->height, sizeof *s->rows);
	for (long k = 0; k < width; k++) {
		s->rows[k] = first + k;
		supernode_of[first + k] = supernode_count;
	}
	memcpy(&s->rows[width], below[last], below_count[last] * sizeof *s->rows);
	s->values = allocate(s->height * width, sizeof *s->values);
	pthread_mutex_init(&s->mutex, NULL);
	supernode_count++;
}

static void find_supernodes(void)
{
	for (long first = 0, j; first < n; first = j) {
		for (j = first + 1; j < n && j - first < max_width && joins(j);)
			j++;
		make_supernode(first, j - first);
	}
	// A supernode must be subtracted from each one that its rows lie in.
	for (long i = 0; i < supernode_count; i++) {
		struct supernode *s = &supernodes[i];
		for (long k = s->width; k < s->height; k++)
			if (k == s->width || supernode_of[s->rows[k]] != supernode_of[s->rows[k - 1]])
				supernodes[supernode_of[s->rows[k]]].missing++;
	}
}

// fill puts the matrix into the supernodes that the thread owns.
static void fill(long id)
{
	for (long i = id; i < supernode_count; i += threads) {
		struct supernode *s = &supernodes[i];
		for (long c = 0; c < s->width; c++) {
			long column = s->first + c, adjacent[4];
			double *values = &s->values[c * s->height];
			values[c] = matrix_element(column, column);
			for (long k = neighbours(column, adjacent); k-- > 0;)
				for (long r = c + 1; r < s->height; r++)
					if (s->rows[r] == adjacent[k])
						values[r] = matrix_element(adjacent[k], column);
		}
	}
}

static void put(long i)
{
	struct queue *q = &queues[i % threads];
	pthread_mutex_lock(&q->mutex);
	supernodes[i].next = q->head;
	q->head = i;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->mutex);
}

static long take(long id)
{
	struct queue *q = &queues[id];
	pthread_mutex_lock(&q->mutex);
	while (q->head < 0)
		pthread_cond_wait(&q->filled, &q->mutex);
	long i = q->head;
	q->head = supernodes[i].next;
	pthread_mutex_unlock(&q->mutex);
	return i;
}

// factor_columns factors the dense columns of a supernode from which all
// products have been subtracted.
static void factor_columns(struct supernode *s)
{
	for (long k = 0; k < s->width; k++) {
		double *column = &s->values[k * s->height];
		double root = sqrt(column[k]);
		for (long i = k; i < s->height; i++)
			column[i] /= root;
		for (long j = k + 1; j < s->width; j++) {
			double *right = &s->values[j * s->height];
			for (long i = j; i < s->height; i++)
				right[i] -= column[i] * column[j];
		}
	}
}

// multiply computes, for the rows of s from begin on and those of them up to
// end as columns, the products that are to be subtracted from the supernode
// of the latter rows.
static void multiply(const struct supernode *s, long begin, long end, double *product)
{
	long height = s->height - begin;
	memset(product, 0, (end - begin) * height * sizeof *product);
	for (long k = 0; k < s->width; k++) {
		const double *column = &s->values[k * s->height + begin];
		for (long j = 0; j < end - begin; j++)
			for (long i = j; i < height; i++)
				product[j * height + i] += column[i] * column[j];
	}
}

static void subtract(struct supernode *target, const struct supernode *s, long begin, long end, const double *product)
{
	long height = s->height - begin;
	for (long j = 0; j < end - begin; j++) {
		double *column = &target->values[(s->rows[begin + j] - target->first) * target->height];
		for (long i = j, r = 0; i < height; i++) {
			while (target->rows[r] != s->rows[begin + i])
				r++;
			column[r] -= product[j * height + i];
		}
	}
}

// update subtracts the supernode's products from all supernodes to its right.
static void update(const struct supernode *s, double *product)
{
	for (long begin = s->width, end; begin < s->height; begin = end) {
		long t = supernode_of[s->rows[begin]];
		struct supernode *target = &supernodes[t];
		for (end = begin + 1; end < s->height && supernode_of[s->rows[end]] == t;)
			end++;
		multiply(s, begin, end, product);
		pthread_mutex_lock(&target->mutex);
		subtract(target, s, begin, end, product);
		bool complete = --target->missing == 0;
		pthread_mutex_unlock(&target->mutex);
		if (complete)
			put(t);
	}
}

static void factor(long id)
{
	double *product = allocate(max_width * n, sizeof *product);
	fill(id);
	pthread_barrier_wait(&barrier);
	for (long left = queues[id].owned; left > 0; left--) {
		struct supernode *s = &supernodes[take(id)];
		factor_columns(s);
		update(s, product);
	}
	pthread_barrier_wait(&barrier);
	free(product);
}

// solve replaces b by the solution of L L' x = b.
static void solve(double *b)
{
	for (long i = 0; i < supernode_count; i++) {
		struct supernode *s = &supernodes[i];
		for (long c = 0; c < s->width; c++) {
			const double *column = &s->values[c * s->height];
			double x = b[s->first + c] /= column[c];
			for (long r = c + 1; r < s->height; r++)
				b[s->rows[r]] -= column[r] * x;
		}
	}
	for (long i = supernode_count - 1; i >= 0; i--) {
		struct supernode *s = &supernodes[i];
		for (long c = s->width - 1; c >= 0; c--) {
			const double *column = &s->values[c * s->height];
			for (long r = c + 1; r < s->height; r++)
				b[s->first + c] -= column[r] * b[s->rows[r]];
			b[s->first + c] /= column[c];
		}
	}
}

// check_solution solves a system whose solution is known.
static void check_solution(void)
{
	double *x = allocate(n, sizeof *x), *b = allocate(n, sizeof *b);
	for (long i = 0; i < n; i++)
		x[i] = unit(random_at(1, i)) - 0.5;
	for (long i = 0; i < n; i++) {
		long adjacent[4];
		b[i] = matrix_element(i, i) * x[i];
		for (long k = neighbours(i, adjacent); k-- > 0;)
			b[i] += matrix_element(i, adjacent[k]) * x[adjacent[k]];
	}
	solve(b);
	for (long i = 0; i < n; i++)
		if (!(fabs(x[i] - b[i]) <= 1e-10))
			wrong("unknown %ld is %g, not %g", i, b[i], x[i]);
	free(x);
	free(b);
}

static void prepare(void)
{
	n = grid * grid;
	order = allocate(n, sizeof *order);
	point_of = allocate(n, sizeof *point_of);
	parent = allocate(n, sizeof *parent);
	below = allocate(n, sizeof *below);
	below_count = allocate(n, sizeof *below_count);
	supernodes = allocate(n, sizeof *supernodes);
	supernode_of = allocate(n, sizeof *supernode_of);
	dissect(0, 0, grid, grid, 0);
	for (long point = 0; point < n; point++)
		point_of[order[point]] = point;
	find_structure();
	find_supernodes();
	for (long i = 0; i < threads; i++) {
		pthread_mutex_init(&queues[i].mutex, NULL);
		pthread_cond_init(&queues[i].filled, NULL);
		queues[i].head = -1;
	}
	for (long i = 0; i < supernode_count; i++) {
		queues[i % threads].owned++;
		if (supernodes[i].missing == 0)
			put(i);
	}
	pthread_barrier_init(&barrier, NULL, threads);
}

// clean_up returns the number of nonzero elements of the factor.
static long clean_up(void)
{
	long nonzeros = 0;
	for (long i = 0; i < n; i++) {
		nonzeros += 1 + below_count[i];
		free(below[i]);
	}
	for (long i = 0; i < supernode_count; i++) {
		pthread_mutex_destroy(&supernodes[i].mutex);
		free(supernodes[i].rows);
		free(supernodes[i].values);
	}
	for (long i = 0; i < threads; i++) {
		pthread_mutex_destroy(&queues[i].mutex);
		pthread_cond_destroy(&queues[i].filled);
	}
	pthread_barrier_destroy(&barrier);
	free(order);
	free(point_of);
	free(parent);
	free(below);
	free(below_count);
	free(supernodes);
	free(supernode_of);
	return nonzeros;
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('g', "GRID", &grid, 1, 500),
		NUMBER('w', "WIDTH", &max_width, 1, 64),
		{0},
	});
	prepare();

	run_threads(threads, factor);

	check_solution();
	long count = supernode_count;
	printf("cholesky: %ld unknowns, %ld supernodes, %ld nonzeros, correct\n", n, count, clean_up());
	return 0;
}
