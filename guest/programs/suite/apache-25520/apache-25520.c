// apache-25520: threads that write lines into one buffer of a log, which is
// flushed to the file when it is full.
//
// In the buggy form nothing orders the threads. Two that find the same end of
// the buffer overwrite each other's lines, and the file has garbled lines.
#include "suite.h"

enum { BUFFER = 256, LINE = 24 };

struct log {
	char buffer[BUFFER];
	volatile long used;
	char *file; // everything that has been written
	long file_size;
	pthread_mutex_t file_mutex;
};

static long threads = 2, lines = 60;
static struct log access_log = {.file_mutex = PTHREAD_MUTEX_INITIALIZER};

#ifndef BUGGY
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

// flush moves the first bytes of the buffer to the file.
static void flush(struct log *l, long size)
{
	pthread_mutex_lock(&l->file_mutex);
	for (long i = 0; i < size; i++)
		l->file[l->file_size++] = l->buffer[i]; // race: buffer
	pthread_mutex_unlock(&l->file_mutex);
	l->used = 0; // race: used
}

static void append(struct log *l, const char *line, long size)
{
	long at = l->used; // race: used
	if (at + size > BUFFER) {
		flush(l, at);
		at = 0;
	}
	DELAY(1);
	for (long i = 0; i < size; i++)
		l->buffer[at + i] = line[i]; // race: buffer
	l->used = at + size; // race: used
}

static void body(long id)
{
	for (long i = 0; i < lines; i++) {
		char line[LINE];
		long size = snprintf(line, sizeof line, "GET /%02ld/%06ld 200\n", id, i);
#ifndef BUGGY
		pthread_mutex_lock(&log_mutex);
#endif
		append(&access_log, line, size);
#ifndef BUGGY
		pthread_mutex_unlock(&log_mutex);
#endif
	}
}

// check verifies that the file has every line once.
static void check(void)
{
	bool *seen = allocate(threads * lines, sizeof *seen);
	long found = 0, id, number, length;
	for (char *at = access_log.file; *at; at += length, found++) {
		length = 0;
		if (sscanf(at, "GET /%02ld/%06ld 200%ln", &id, &number, &length) != 2 || length == 0 || at[length++] != '\n' ||
		    id < 0 || id >= threads || number < 0 || number >= lines || seen[id * lines + number])
			wrong("line %ld of the log is garbled: %.16s", found, at);
		seen[id * lines + number] = true;
	}
	if (found != threads * lines)
		wrong("the log has %ld lines of %ld", found, threads * lines);
	free(seen);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('n', "LINES", &lines, 1, 999999),
		{0},
	});
	// A thread may flush bytes that another has already flushed.
	access_log.file = allocate(threads * lines + 1, 2 * BUFFER);

	run_threads(threads, body);

	flush(&access_log, access_log.used);
	check();
	printf("apache-25520: %ld lines of each thread, correct\n", lines);
	free(access_log.file);
	return 0;
}
