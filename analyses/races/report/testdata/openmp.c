// Parallel regions of OpenMP: those whose accesses OpenMP's rules order, and some that they do not.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 60, THREADS = 3 };

int items[ITEMS], mirrored[ITEMS], total; // not static: the compiler keeps all accesses
static omp_lock_t lock;

static int fibonacci(int n)
{
	int x, y;
	if (n < 2)
		return n;
#pragma omp task shared(x)
	x = fibonacci(n - 1);
#pragma omp task shared(y)
	y = fibonacci(n - 2);
#pragma omp taskwait
	return x + y;
}

// worksharing uses every construct that divides work, with the barriers at their ends.
static void worksharing(void)
{
	int sum = 0;
#pragma omp parallel num_threads(THREADS)
	{
#pragma omp for reduction(+ : sum)
		for (int i = 0; i < ITEMS; i++)
			sum += items[i] = i;
#pragma omp for schedule(dynamic, 7)
		for (int i = 0; i < ITEMS; i++)
			items[ITEMS - 1 - i]++;
#pragma omp for schedule(guided)
		for (int i = 0; i < ITEMS; i++)
			items[i] += mirrored[i] = 1;
#pragma omp single
		items[0]++;
#pragma omp sections
		{
#pragma omp section
			items[1]++;
#pragma omp section
			items[2]++;
		}
	}
	total = sum;
}

static void exclusion(void)
{
	omp_init_lock(&lock);
#pragma omp parallel num_threads(THREADS)
	for (int i = 0; i < 10; i++) {
#pragma omp critical
		total++;
		omp_set_lock(&lock);
		items[0]++;
		omp_unset_lock(&lock);
	}
}

static void tasks(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
	total = fibonacci(8);
}

static void dependences(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
	{
#pragma omp task depend(out : total)
		total = 1;
#pragma omp task depend(inout : total)
		total += 2;
#pragma omp task depend(in : total)
		items[0] = total;
	}
}

// unguarded adds to a variable in a loop without a reduction.
static void unguarded(void)
{
#pragma omp parallel for num_threads(THREADS)
	for (int i = 0; i < ITEMS; i++)
		total += i;
}

// nowait reads, without a barrier, what other threads write.
static void nowait(void)
{
#pragma omp parallel num_threads(THREADS)
	{
#pragma omp for nowait
		for (int i = 0; i < ITEMS; i++)
			items[i] = i;
#pragma omp for
		for (int i = 0; i < ITEMS; i++)
			mirrored[i] = items[ITEMS - 1 - i];
	}
}

// untied leaves out the wait for a task.
static void untied(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
	{
#pragma omp task
		total = 1;
		mirrored[0] = total;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"worksharing", worksharing}, {"exclusion", exclusion}, {"tasks", tasks}, {"dependences", dependences},
		{"unguarded", unguarded}, {"nowait", nowait}, {"untied", untied},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 1;
}
