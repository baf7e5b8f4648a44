// mysql-2011: a thread that reads the end of a log, file and position,
// while another continues with the next file.
//
// In the buggy form the two variables are read and written without a lock. The
// reader may see the new file with the old position, takes that for an error,
// and gives up.
#include "suite.h"

enum { HEADER = 4, EVENT = 40 };

static long rounds = 60, files;
static volatile long file, position;
static long *sizes; // of the files
static bool failed;

#ifndef BUGGY
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

static void lock_log(void)
{
#ifndef BUGGY
	pthread_mutex_lock(&mutex);
#endif
}

static void unlock_log(void)
{
#ifndef BUGGY
	pthread_mutex_unlock(&mutex);
#endif
}

// write_log writes every file to its end. Each is shorter than the one before.
static void write_log(void)
{
	for (long f = 0; f < files; f++) {
		lock_log();
		file = f; // race: file
		DELAY(1);
		position = HEADER; // race: position
		unlock_log();
		while (position + EVENT <= sizes[f]) {
			lock_log();
			position = position + EVENT; // race: position
			unlock_log();
		}
		DELAY(1);
	}
}

static void read_log(void)
{
	for (long i = 0; i < rounds && !failed; i++) {
		lock_log();
		long f = file; // race: file
		long p = position; // race: position
		unlock_log();
		DELAY(1);
		failed = p > sizes[f];
	}
}

static void body(long id)
{
	if (id == 0)
		write_log();
	else
		read_log();
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('r', "ROUNDS", &rounds, 1, 1000000),
		{0},
	});
	files = rounds;
	sizes = allocate(files, sizeof *sizes);
	for (long f = 0; f < files; f++)
		sizes[f] = HEADER + EVENT * (f % 4 == 3 ? 0 : 4 - f % 4);

	run_threads(2, body);

	if (failed)
		wrong("the position is beyond the end of the log");
	printf("mysql-2011: %ld files, correct\n", files);
	free(sizes);
	return 0;
}
