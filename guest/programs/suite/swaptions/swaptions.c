// swaptions: prices of swaptions by simulating forward rates with the model of
// Heath, Jarrow and Morton (1992), in discrete time without arbitrage
// (Glasserman, Monte Carlo Methods in Financial Engineering, section 3.6).
//
// Each thread owns a range of the swaptions; a swaption has random numbers of
// its own, so its price does not depend on the thread. There is no
// synchronization but starting and joining threads.
#include "suite.h"

enum {
	PERIODS = 12, // of a curve of forward rates
	FACTORS = 3,  // sources of randomness
	MAX_SWAPTIONS = 100000
};

struct swaption {
	double strike, years_each; // fixed rate; length of a period
	long maturity, tenor;      // in periods
	double curve[PERIODS];     // forward rates at the beginning
	double price, error;       // result and its standard error
	double bond, bond_error;   // discount factor to the maturity of the swap
};

static long threads = 4, n = 8, trials = 200, seed = 1;
static struct swaption *swaptions;

static void make_swaption(struct swaption *s, long i)
{
	uint64_t random = random_at(seed, i);
	s->years_each = 0.5;
	s->maturity = 2 + random_below(&random, 5);
	s->tenor = 2 + random_below(&random, PERIODS - s->maturity - 1);
	double level = 0.03 + 0.04 * random_unit(&random);
	s->strike = level * (0.8 + 0.4 * random_unit(&random));
	for (long k = 0; k < PERIODS; k++)
		s->curve[k] = level + 0.002 * k;
}

// volatility of the forward rate for a period that starts k periods ahead.
static double volatility(int factor, long k)
{
	static const double level[FACTORS] = {0.01, 0.005, 0.003};
	return level[factor] / (1 + 0.3 * factor * k);
}

// fill_drift computes the growth of rates in a period under which bonds have
// their price as value.
static void fill_drift(double drift[PERIODS], double years)
{
	double before = 0;
	for (long k = 1; k < PERIODS; k++) {
		double after = 0;
		for (int f = 0; f < FACTORS; f++) {
			double sum = 0;
			for (long j = 1; j <= k; j++)
				sum += volatility(f, j) * years;
			after += sum * sum / 2;
		}
		drift[k] = (after - before) / years;
		before = after;
	}
}

// normal_pair makes two normally distributed numbers by the method of Box and
// Muller.
static void normal_pair(uint64_t *random, double pair[2])
{
	double radius = sqrt(-2 * log(1 - random_unit(random))), angle = 6.283185307179586 * random_unit(random);
	pair[0] = radius * cos(angle);
	pair[1] = radius * sin(angle);
}

// move_curve shifts the curve by one period: curve[k] becomes the rate k periods
// after the new time.
static void move_curve(double *curve, long left, const double *drift, double years, uint64_t *random)
{
	double shock[4];
	normal_pair(random, shock);
	normal_pair(random, shock + 2);
	for (long k = 1; k < left; k++) {
		double change = drift[k] * years;
		for (int f = 0; f < FACTORS; f++)
			change += volatility(f, k) * sqrt(years) * shock[f];
		curve[k - 1] = curve[k] + change;
	}
}

// A path of rates gives the value of the swaption and of a bond today.
struct outcome {
	double swaption, bond;
};

static struct outcome simulate(const struct swaption *s, const double *drift, uint64_t *random)
{
	double curve[PERIODS], discount = 1;
	memcpy(curve, s->curve, sizeof curve);
	for (long t = 0; t < s->maturity; t++) {
		discount *= exp(-curve[0] * s->years_each);
		move_curve(curve, PERIODS - t, drift, s->years_each, random);
	}
	double bond = 1, fixed = 0;
	for (long k = 0; k < s->tenor; k++) {
		bond *= exp(-curve[k] * s->years_each);
		fixed += s->strike * s->years_each * bond;
	}
	return (struct outcome){discount * fmax(0, 1 - bond - fixed), discount * bond};
}

static double standard_error(double sum, double squares)
{
	double mean = sum / trials;
	return sqrt(fmax(0, squares / trials - mean * mean) / trials);
}

static void price(struct swaption *s, uint64_t random)
{
	double drift[PERIODS], sum = 0, squares = 0, bonds = 0, bond_squares = 0;
	fill_drift(drift, s->years_each);
	for (long i = 0; i < trials; i++) {
		struct outcome o = simulate(s, drift, &random);
		sum += o.swaption;
		squares += o.swaption * o.swaption;
		bonds += o.bond;
		bond_squares += o.bond * o.bond;
	}
	s->price = sum / trials;
	s->error = standard_error(sum, squares);
	s->bond = bonds / trials;
	s->bond_error = standard_error(bonds, bond_squares);
}

static void price_swaptions(long id)
{
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		price(&swaptions[i], random_at(seed + 1, i));
}

// check compares the simulated price of a bond with that of the curve: the
// model has no arbitrage, so they agree but for chance. The swaption cannot
// cost more than the bond that it can be exchanged for.
static void check(const struct swaption *s)
{
	double exact = 1;
	for (long k = 0; k < s->maturity + s->tenor; k++)
		exact *= exp(-s->curve[k] * s->years_each);
	if (!(fabs(s->bond - exact) <= 5 * s->bond_error + 1e-12))
		wrong("a bond is worth %g +- %g, not %g", s->bond, s->bond_error, exact);
	if (!(s->price >= 0 && s->price < 1))
		wrong("a swaption costs %g", s->price);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "SWAPTIONS", &n, 1, MAX_SWAPTIONS),
		NUMBER('t', "TRIALS", &trials, 20, 100000000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	});
	swaptions = allocate(n, sizeof *swaptions);
	for (long i = 0; i < n; i++)
		make_swaption(&swaptions[i], i);

	run_threads(threads, price_swaptions);

	double sum = 0;
	for (long i = 0; i < n; i++) {
		check(&swaptions[i]);
		sum += swaptions[i].price;
	}
	printf("swaptions: %ld swaptions, %ld trials, mean price %.8f, correct\n", n, trials, sum / n);
	free(swaptions);
	return 0;
}
