// Shared by the programs of the suite: arguments, seeded random numbers,
// threads, checks, and the delays that make a bug show.
//
// Every input comes from a seed, nothing from the clock or the host. A program
// that finds its own result wrong says so on standard error and exits with
// status 1; arguments that it cannot use give a usage line and status 2.
#ifndef SUITE_H
#define SUITE_H

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hints.h"
#ifdef COUNT
#include "count.h"
#else
#define COUNT_WAIT() ((void)0)
#endif

// An argument of the form "-x VALUE" or "-xVALUE". Exactly one of number and
// text is set and gets the value; a number lies between least and greatest.
// The list of a program's arguments ends with a zero letter.
struct argument {
	char letter;
	const char *value;
	long *number;
	const char **text;
	long least, greatest;
};

enum { MAX_THREADS = 64 };

#define NUMBER(letter, value, to, least, greatest) {letter, value, to, NULL, least, greatest}
#define TEXT(letter, value, to) {letter, value, NULL, to, 0, 0}
#define THREADS(to) NUMBER('p', "THREADS", to, 1, MAX_THREADS)

// usage_error prints the usage line and ends the program.
static inline _Noreturn void usage_error(const struct argument *known)
{
	fprintf(stderr, "usage: %s", program_invocation_short_name);
	for (; known->letter; known++) {
		fprintf(stderr, " [-%c %s", known->letter, known->value);
		if (known->number)
			fprintf(stderr, " (%ld-%ld)", known->least, known->greatest);
		fprintf(stderr, "]");
	}
	fprintf(stderr, "\n");
	exit(2);
}

static inline bool take_argument(const struct argument *a, const char *value)
{
	if (a->text) {
		*a->text = value;
		return *value != 0;
	}
	char *end;
	errno = 0;
	*a->number = strtol(value, &end, 10);
	return isdigit((unsigned char)*value) && *end == 0 && errno == 0 &&
	       *a->number >= a->least && *a->number <= a->greatest;
}

// read_arguments sets the variables that the known arguments name.
static inline void read_arguments(int argc, char **argv, const struct argument *known)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-' || argv[i][1] == 0)
			usage_error(known);
		const struct argument *a = known;
		while (a->letter && a->letter != argv[i][1])
			a++;
		const char *value = argv[i] + 2;
		if (*value == 0)
			value = ++i < argc ? argv[i] : "";
		if (a->letter == 0 || !take_argument(a, value))
			usage_error(known);
	}
}

// wrong reports that the program's own check of its result failed.
static inline _Noreturn __attribute__((format(printf, 1, 2))) void wrong(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	fprintf(stderr, "%s: wrong: ", program_invocation_short_name);
	vfprintf(stderr, format, values);
	fprintf(stderr, "\n");
	va_end(values);
	exit(1);
}

// allocate returns zeroed memory.
static inline void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);
	if (p == NULL && count > 0) {
		fprintf(stderr, "%s: no memory for %zu times %zu bytes\n", program_invocation_short_name, count, size);
		exit(3);
	}
	return p;
}

// needed ends the program when a system call or library function failed.
static inline long needed(long result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
		exit(3);
	}
	return result;
}

// mix is the finaliser of the SplitMix64 generator (Steele, Lea, Flood, 2014):
// a bijection of 64-bit words that looks random.
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

// The sequence of random words that starts at a seed.
static inline uint64_t random_word(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15u);
}

// random_at is word i of the sequence with that seed, so that threads can make
// their parts of an input by themselves.
static inline uint64_t random_at(uint64_t seed, uint64_t i)
{
	return mix(mix(seed + 0x9e3779b97f4a7c15u) + i * 0x9e3779b97f4a7c15u);
}

// unit makes a number from 0 to below 1 of a random word.
static inline double unit(uint64_t word)
{
	return (word >> 11) * 0x1p-53;
}

static inline double random_unit(uint64_t *state)
{
	return unit(random_word(state));
}

static inline long random_below(uint64_t *state, long n)
{
	return random_word(state) % n;
}

// A digest differs for results that differ in any bit; it starts at 0.
static inline void digest_word(uint64_t *digest, uint64_t word)
{
	*digest = mix(*digest ^ word) + word;
}

static inline void digest_double(uint64_t *digest, double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof word);
	digest_word(digest, word);
}

// share_start is where part i of n things begins when they are divided evenly
// into the given number of parts; part i ends where part i+1 starts.
static inline long share_start(long n, long parts, long i)
{
	return n * i / parts;
}

static inline double now_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline void start_thread(pthread_t *thread, void *(*body)(void *), void *argument)
{
	errno = pthread_create(thread, NULL, body, argument);
	needed(errno ? -1 : 0, "pthread_create");
}

struct numbered_thread {
	long id;
	void (*body)(long id);
};

static inline void *run_numbered(void *argument)
{
	struct numbered_thread *t = argument;
	HINT(soba_wait(HINT_START));
	t->body(t->id);
	return NULL;
}

// run_threads calls body(0), ..., body(n-1), each in a thread of its own except
// body(0), which the calling thread runs. It returns when all have.
static inline void run_threads(long n, void (*body)(long id))
{
	pthread_t threads[MAX_THREADS];
	struct numbered_thread list[MAX_THREADS];
	HINT(soba_init(HINT_START, n, 0));
	for (long i = 1; i < n; i++) {
		list[i] = (struct numbered_thread){i, body};
		start_thread(&threads[i], run_numbered, &list[i]);
	}
	HINT(soba_wait(HINT_START));
	body(0);
	for (long i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
}

// DELAY stops the thread for some milliseconds in builds with inserted delays,
// and does nothing in all others.
#ifdef DELAYS
#define DELAY(milliseconds) nanosleep(&(struct timespec){0, (milliseconds) * 1000000L}, NULL)
#else
#define DELAY(milliseconds) ((void)0)
#endif

#endif
