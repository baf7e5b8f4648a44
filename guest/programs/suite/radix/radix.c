// radix: parallel radix sort of integer keys (Blelloch and others, 1991).
//
// For each digit from the least significant on, every thread counts the digits
// of its keys; the counts are summed over threads by a binary tree, up and then
// down, in which a thread pauses on flags of its neighbours; then each thread
// moves its keys to their places in the other array. A thread's writes there
// are scattered over all threads' parts.
#include "flag.h"
#include "suite.h"

enum { MAX_LEVELS = 7 }; // of the tree: 2^6 is MAX_THREADS

static long threads = 4, n = 4096, radix = 256, max_bits = 20, seed = 1;
static long log2radix;
static uint32_t *keys, *moved;
static long *sums;   // [level][thread][digit]: counts of the subtree that the thread heads
static long *before; // [thread][digit]: keys that go before the thread's keys of that digit
static struct flag counted[MAX_THREADS], placed[MAX_THREADS];
static pthread_barrier_t barrier;

static long *sum(long level, long id)
{
	return &sums[(level * threads + id) * radix];
}

static void count_digits(long id, long shift)
{
	long *count = sum(0, id);
	memset(count, 0, radix * sizeof *count);
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		count[keys[i] >> shift & (radix - 1)]++;
}

// sum_up adds the counts of subtrees on the way to the root, thread 0. It
// returns the level at which the thread is no longer the head of a subtree.
static long sum_up(long id)
{
	long level = 0;
	for (long step = 1; step < threads; step *= 2, level++) {
		if (id % (2 * step) != 0) {
			flag_raise(&counted[id]);
			return level;
		}
		long *total = sum(level + 1, id);
		memcpy(total, sum(level, id), radix * sizeof *total);
		if (id + step >= threads)
			continue;
		flag_await(&counted[id + step]);
		for (long d = 0; d < radix; d++)
			total[d] += sum(level, id + step)[d];
	}
	return level;
}

// pass_down gives the heads of the right subtrees the number of keys before
// theirs.
static void pass_down(long id, long level)
{
	long *mine = &before[id * radix];
	if (id == 0) {
		long total = 0;
		for (long d = 0; d < radix; d++) {
			mine[d] = total;
			total += sum(level, 0)[d];
		}
	} else {
		flag_await(&placed[id]);
	}
	while (--level >= 0) {
		long right = id + (1L << level);
		if (right >= threads)
			continue;
		for (long d = 0; d < radix; d++)
			before[right * radix + d] = mine[d] + sum(level, id)[d];
		flag_raise(&placed[right]);
	}
}

static void move_keys(long id, long shift)
{
	long *place = &before[id * radix];
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		moved[place[keys[i] >> shift & (radix - 1)]++] = keys[i];
}

static uint32_t input_key(long i)
{
	return random_at(seed, i) & ((1L << max_bits) - 1);
}

static void sort(long id)
{
	for (long i = share_start(n, threads, id); i < share_start(n, threads, id + 1); i++)
		keys[i] = input_key(i);
	pthread_barrier_wait(&barrier);
	for (long shift = 0; shift < max_bits; shift += log2radix) {
		count_digits(id, shift);
		pass_down(id, sum_up(id));
		pthread_barrier_wait(&barrier);
		move_keys(id, shift);
		pthread_barrier_wait(&barrier);
		if (id == 0) {
			uint32_t *from = keys;
			keys = moved;
			moved = from;
		}
		pthread_barrier_wait(&barrier);
	}
}

// check verifies that the keys are those of the input and in order. It
// returns their digest.
static uint64_t check(void)
{
	uint64_t digest = 0, in = 0, out = 0;
	for (long i = 0; i < n; i++) {
		if (i > 0 && keys[i - 1] > keys[i])
			wrong("key %ld is %u and the one before %u", i, keys[i], keys[i - 1]);
		in += mix(input_key(i) + 1);
		out += mix(keys[i] + 1L);
		digest_word(&digest, keys[i]);
	}
	if (in != out)
		wrong("the keys are not those of the input");
	return digest;
}

int main(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		NUMBER('n', "KEYS", &n, 1, 100000000),
		NUMBER('r', "RADIX", &radix, 2, 65536),
		NUMBER('m', "KEY_BITS", &max_bits, 1, 31),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	};
	read_arguments(argc, argv, known);
	while (1L << log2radix < radix)
		log2radix++;
	if (1L << log2radix != radix)
		usage_error(known);
	keys = allocate(n, sizeof *keys);
	moved = allocate(n, sizeof *moved);
	sums = allocate(MAX_LEVELS * threads * radix, sizeof *sums);
	before = allocate(threads * radix, sizeof *before);
	for (long i = 0; i < threads; i++) {
		flag_init(&counted[i]);
		flag_init(&placed[i]);
	}
	pthread_barrier_init(&barrier, NULL, threads);

	run_threads(threads, sort);

	printf("radix: %ld keys, digest %016llx, correct\n", n, (unsigned long long)check());
	pthread_barrier_destroy(&barrier);
	for (long i = 0; i < threads; i++) {
		flag_destroy(&counted[i]);
		flag_destroy(&placed[i]);
	}
	free(keys);
	free(moved);
	free(sums);
	free(before);
	return 0;
}
