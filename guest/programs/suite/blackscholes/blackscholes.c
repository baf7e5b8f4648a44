// blackscholes: prices of European options by the formula of Black and Scholes
// (1973), the normal distribution by a polynomial (Abramowitz and Stegun,
// 26.2.17).
//
// Each thread owns a range of the options and computes their prices repeatedly;
// is no synchronization but starting and joining threads.
#include "suite.h"

struct option {
	double spot, strike, rate, volatility, years;
	bool put;
	double price;
};

static long threads = 4, n = 512, runs = 5, seed = 1;
static struct option *options;

static void make_option(struct option *o, long i)
{
	uint64_t random = random_at(seed, i);
	o->spot = 20 + 100 * random_unit(&random);
	o->strike = o->spot * (0.7 + 0.6 * random_unit(&random));
	o->rate = 0.01 + 0.08 * random_unit(&random);
	o->volatility = 0.1 + 0.5 * random_unit(&random);
	o->years = 0.1 + 2 * random_unit(&random);
	o->put = random_below(&random, 2);
}

// normal is the distribution function of the standard normal distribution, to
// 7.5e-8.
static double normal(double x)
{
	double t = 1 / (1 + 0.2316419 * fabs(x));
	double tail = 0.3989422804014327 * exp(-x * x / 2) * t *
		(0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
	return x < 0 ? tail : 1 - tail;
}

static double exact_normal(double x)
{
	return erfc(-x / sqrt(2)) / 2;
}

static double price(const struct option *o, bool put, double (*distribution)(double))
{
	double deviation = o->volatility * sqrt(o->years);
	double d1 = (log(o->spot / o->strike) + (o->rate + o->volatility * o->volatility / 2) * o->years) / deviation;
	double d2 = d1 - deviation;
	double discounted = o->strike * exp(-o->rate * o->years);
	if (put)
		return discounted * distribution(-d2) - o->spot * distribution(-d1);
	return o->spot * distribution(d1) - discounted * distribution(d2);
}

static void price_options(long id)
{
	for (long run = 0; run < runs; run++)
		for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
			options[i].price = price(&options[i], options[i].put, normal);
}

// check compares a price with the exact distribution's, and with that of the
// opposite option by put-call parity.
static void check(const struct option *o)
{
	double exact = price(o, o->put, exact_normal), opposite = price(o, !o->put, normal);
	if (!(fabs(o->price - exact) <= 1e-6 * (o->spot + o->strike)))
		wrong("a price is %g, not %g", o->price, exact);
	double call = o->put ? opposite : o->price, put = o->put ? o->price : opposite;
	double parity = o->spot - o->strike * exp(-o->rate * o->years);
	if (!(fabs(call - put - parity) <= 1e-6 * (o->spot + o->strike)))
		wrong("a call costs %g and the put %g: not %g apart", call, put, parity);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "OPTIONS", &n, 1, 10000000),
		NUMBER('r', "RUNS", &runs, 1, 10000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	options = allocate(n, sizeof *options);
	for (long i = 0; i < n; i++)
		make_option(&options[i], i);

	run_threads(threads, price_options);

	double sum = 0;
	for (long i = 0; i < n; i++) {
		check(&options[i]);
		sum += options[i].price;
	}
	printf("blackscholes: %ld options, mean price %.6f, correct\n", n, sum / n);
	free(options);
	return 0;
}
