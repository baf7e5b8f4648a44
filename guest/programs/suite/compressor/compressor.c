// compressor: compresses and decompresses in parallel with libbz2.
//
// The main thread cuts the input into blocks and puts them into a bounded
// queue; workers take blocks, compress each into a bzip2 stream of its own, and
// put results into a table; a writer thread writes them in order. The output is
// an ordinary bzip2 file of several streams, and decompressing one goes the same
// way, stream by stream. Without -i the program makes a text, compresses and
// decompresses it, and compares.
//
// In the buggy form the main thread waits for the writer only, and then frees
// the queue, which a worker that has delivered its last block still reads.
#include <bzlib.h>

#include "suite.h"

enum { QUEUE_SLOTS = 8, STREAM_HEADER = 10 };

struct bytes {
	char *data;
	size_t size;
};

struct block {
	struct bytes in, out;
	bool done;
};

// A bounded queue of block numbers.
struct fifo {
	long slots[QUEUE_SLOTS];
	long first, count;
	bool closed; // no more blocks will be put
	pthread_mutex_t *mutex;
	pthread_cond_t not_empty, not_full;
};

struct pipeline {
	struct fifo *fifo;
	bool decompress;
	struct block *blocks;
	long block_count;
	FILE *output;
	pthread_mutex_t done_mutex; // for blocks
	pthread_cond_t done_changed;
	pthread_t workers[MAX_THREADS], writer;
};

static long threads = 4, block_kilobytes = 100, kilobytes = 400, decompress, seed = 1;
static const char *input_name, *output_name;

static struct fifo *new_fifo(void)
{
	struct fifo *f = allocate(1, sizeof *f);
	f->mutex = allocate(1, sizeof *f->mutex);
	pthread_mutex_init(f->mutex, NULL);
	pthread_cond_init(&f->not_empty, NULL);
	pthread_cond_init(&f->not_full, NULL);
	return f;
}

static void delete_fifo(struct pipeline *p)
{
	struct fifo *f = p->fifo;
	free(f->mutex); // race: mutex
	f->mutex = NULL; // race: fifo->mutex
	p->fifo = NULL; // race: fifo
#ifndef BUGGY
	free(f);
#endif
}

static void put(struct fifo *f, long block)
{
	pthread_mutex_lock(f->mutex);
	while (f->count == QUEUE_SLOTS)
		pthread_cond_wait(&f->not_full, f->mutex);
	f->slots[(f->first + f->count++) % QUEUE_SLOTS] = block;
	pthread_cond_signal(&f->not_empty);
	pthread_mutex_unlock(f->mutex);
}

static void close_fifo(struct fifo *f)
{
	pthread_mutex_lock(f->mutex);
	f->closed = true;
	pthread_cond_broadcast(&f->not_empty);
	pthread_mutex_unlock(f->mutex);
}

// take returns the next block's number, or -1 after the last one.
static long take(struct pipeline *p)
{
	struct fifo *f = p->fifo; // race: fifo
	pthread_mutex_t *mutex = f->mutex; // race: fifo->mutex
	long block = -1;
	pthread_mutex_lock(mutex); // race: mutex
	while (f->count == 0 && !f->closed)
		pthread_cond_wait(&f->not_empty, mutex);
	if (f->count > 0) {
		block = f->slots[f->first];
		f->first = (f->first + 1) % QUEUE_SLOTS;
		f->count--;
		pthread_cond_signal(&f->not_full);
	}
	pthread_mutex_unlock(mutex); // race: mutex
	return block;
}

static void compress_block(struct block *b)
{
	unsigned size = b->in.size + b->in.size / 100 + 600; // the bound that libbz2 states
	b->out.data = allocate(size, 1);
	int result = BZ2_bzBuffToBuffCompress(b->out.data, &size, b->in.data, b->in.size, 9, 0, 0);
	if (result != BZ_OK)
		wrong("libbz2 does not compress: %d", result);
	b->out.size = size;
}

static void grow(struct bytes *b, size_t size)
{
	b->data = realloc(b->data, size);
	if (b->data == NULL)
		wrong("no memory for %zu bytes", size);
	b->size = size;
}

static void decompress_block(struct block *b)
{
	bz_stream s = {.next_in = b->in.data, .avail_in = b->in.size};
	int result = BZ2_bzDecompressInit(&s, 0, 0);
	size_t filled = 0;
	while (result == BZ_OK) {
		if (filled == b->out.size)
			grow(&b->out, 2 * filled + 100000);
		s.next_out = b->out.data + filled;
		s.avail_out = b->out.size - filled;
		size_t before = s.avail_in + s.avail_out;
		result = BZ2_bzDecompress(&s);
		filled = b->out.size - s.avail_out;
		if (result == BZ_OK && s.avail_in == 0 && s.avail_out > 0 && before == s.avail_in + s.avail_out)
			result = BZ_UNEXPECTED_EOF;
	}
	BZ2_bzDecompressEnd(&s);
	if (result != BZ_STREAM_END)
		wrong("the input is no bzip2 file: %d", result);
	b->out.size = filled;
}

static void *work(void *argument)
{
	struct pipeline *p = argument;
	for (long i; (i = take(p)) >= 0;) {
		struct block *b = &p->blocks[i];
		if (p->decompress)
			decompress_block(b);
		else
			compress_block(b);
		pthread_mutex_lock(&p->done_mutex);
		b->done = true;
		pthread_cond_signal(&p->done_changed);
		pthread_mutex_unlock(&p->done_mutex);
		DELAY(5);
	}
	return NULL;
}

static void *write_blocks(void *argument)
{
	struct pipeline *p = argument;
	for (long i = 0; i < p->block_count; i++) {
		struct block *b = &p->blocks[i];
		pthread_mutex_lock(&p->done_mutex);
		while (!b->done)
			pthread_cond_wait(&p->done_changed, &p->done_mutex);
		pthread_mutex_unlock(&p->done_mutex);
		if (fwrite(b->out.data, 1, b->out.size, p->output) != b->out.size)
			wrong("cannot write: %s", strerror(errno));
		free(b->out.data);
	}
	return NULL;
}

// stream_start reports whether a bzip2 stream with data starts here.
static bool stream_start(const char *data)
{
	return memcmp(data, "BZh", 3) == 0 && data[3] >= '1' && data[3] <= '9' && memcmp(data + 4, "1AY&SY", 6) == 0;
}

// next_cut finds the end of the block that starts at a place.
static size_t next_cut(const struct pipeline *p, struct bytes in, size_t from)
{
	if (!p->decompress)
		return in.size - from < block_kilobytes * 1000UL ? in.size : from + block_kilobytes * 1000;
	for (size_t i = from + 1; i + STREAM_HEADER <= in.size; i++)
		if (stream_start(in.data + i))
			return i;
	return in.size;
}

// cut makes the blocks. Empty input is one block, too.
static void cut(struct pipeline *p, struct bytes in)
{
	size_t from = 0, to;
	do {
		to = next_cut(p, in, from);
		p->blocks = realloc(p->blocks, (p->block_count + 1) * sizeof *p->blocks);
		if (p->blocks == NULL)
			wrong("no memory for %ld blocks", p->block_count);
		p->blocks[p->block_count++] = (struct block){.in = {in.data + from, to - from}};
		from = to;
	} while (from < in.size);
}

static void run(struct pipeline *p, struct bytes in, bool back, FILE *output)
{
	p->decompress = back;
	p->output = output;
	p->fifo = new_fifo();
	pthread_mutex_init(&p->done_mutex, NULL);
	pthread_cond_init(&p->done_changed, NULL);
	cut(p, in);
	for (long i = 0; i < threads; i++)
		start_thread(&p->workers[i], work, p);
	start_thread(&p->writer, write_blocks, p);
	for (long i = 0; i < p->block_count; i++)
		put(p->fifo, i);
	close_fifo(p->fifo);
	pthread_join(p->writer, NULL);
#ifndef BUGGY
	for (long i = 0; i < threads; i++)
		pthread_join(p->workers[i], NULL);
#endif
	delete_fifo(p);
	DELAY(50);
}

static struct bytes read_file(const char *name)
{
	struct bytes b = {NULL, 0};
	FILE *f = fopen(name, "rb");
	needed(f ? 0 : -1, name);
	for (size_t filled = 0;;) {
		if (filled == b.size)
			grow(&b, 2 * filled + 65536);
		size_t got = fread(b.data + filled, 1, b.size - filled, f);
		filled += got;
		if (got == 0) {
			b.size = filled;
			break;
		}
	}
	fclose(f);
	return b;
}

// make_text makes lines of words that repeat.
static struct bytes make_text(size_t size)
{
	struct bytes b = {allocate(size, 1), size};
	uint64_t random = seed;
	for (size_t i = 0; i < size;) {
		uint64_t word = random_below(&random, 2000);
		for (long letters = 2 + random_at(7, word) % 9; letters > 0 && i < size; letters--)
			b.data[i++] = 'a' + random_at(8, word * 16 + letters) % 26;
		if (i < size)
			b.data[i++] = random_below(&random, 12) ? ' ' : '\n';
	}
	return b;
}

static struct pipeline there, back;

// process_file compresses or decompresses a file, as the arguments say.
static int process_file(void)
{
	struct bytes in = read_file(input_name);
	FILE *out = fopen(output_name, "wb");
	needed(out ? 0 : -1, output_name);
	run(&there, in, decompress, out);
	needed(fclose(out), output_name);
	free(in.data);
	return 0;
}

static int check_round_trip(void)
{
	struct bytes text = make_text(kilobytes * 1000), packed, again;
	FILE *out = open_memstream(&packed.data, &packed.size);
	run(&there, text, false, out);
	fclose(out);
	out = open_memstream(&again.data, &again.size);
	run(&back, packed, true, out);
	fclose(out);
	if (again.size != text.size || memcmp(again.data, text.data, text.size) != 0)
		wrong("%zu bytes came back as other %zu bytes", text.size, again.size);
	uint64_t digest = 0;
	for (size_t i = 0; i < packed.size; i++)
		digest_word(&digest, (unsigned char)packed.data[i]);
	printf("compressor: %zu bytes in %ld blocks to %zu bytes, digest %016llx, correct\n",
	       text.size, there.block_count, packed.size, (unsigned long long)digest);
	free(text.data);
	free(packed.data);
	free(again.data);
	return 0;
}

int main(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		NUMBER('b', "BLOCK_KILOBYTES", &block_kilobytes, 1, 900),
		NUMBER('n', "KILOBYTES", &kilobytes, 1, 2000000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		TEXT('i', "INPUT", &input_name),
		TEXT('o', "OUTPUT", &output_name),
		NUMBER('d', "DECOMPRESS", &decompress, 0, 1),
		{0},
	};
	read_arguments(argc, argv, known);
	if ((input_name == NULL) != (output_name == NULL))
		usage_error(known);
	int status = input_name ? process_file() : check_round_trip();
#ifndef BUGGY
	free(there.blocks);
	free(back.blocks);
#endif
	return status;
}
