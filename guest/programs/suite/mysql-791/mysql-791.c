// mysql-791: threads that note their operations in a log while another thread
// closes the log and opens the next file.
//
// In the buggy form a thread that finds the log closed for that moment does not
// note its operation.
#include "suite.h"

static long threads = 2, operations = 60;
static volatile bool is_open = true;
static long file, noted, done;
static char name[32]; // of the file
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t count_mutex = PTHREAD_MUTEX_INITIALIZER;

// rotate continues with the next file.
static void rotate(void)
{
	pthread_mutex_lock(&mutex);
	is_open = false; // race: is_open
	snprintf(name, sizeof name, "log-bin.%06ld", ++file);
	DELAY(2);
	is_open = true; // race: is_open
	pthread_mutex_unlock(&mutex);
}

static void note(void)
{
	pthread_mutex_lock(&mutex);
	noted++;
	pthread_mutex_unlock(&mutex);
}

static void operate(void)
{
	pthread_mutex_lock(&count_mutex);
	done++;
	pthread_mutex_unlock(&count_mutex);
#ifdef BUGGY
	DELAY(1);
	if (is_open) // race: is_open
		note();
#else
	pthread_mutex_lock(&mutex);
	bool ready = is_open;
	pthread_mutex_unlock(&mutex);
	if (ready)
		note();
#endif
}

static void body(long id)
{
	for (long i = 0; i < operations; i++) {
		if (id > 0)
			operate();
		else if (i % 4 == 0)
			rotate();
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('n', "OPERATIONS", &operations, 1, 10000000),
		{0},
	});

	run_threads(threads, body);

	if (strtol(strchr(name, '.') + 1, NULL, 10) != file)
		wrong("file %ld has the name %s", file, name);
	if (noted != done)
		wrong("%ld operations were noted of %ld", noted, done);
	printf("mysql-791: %ld files, no operation missing, correct\n", file + 1);
	return 0;
}
