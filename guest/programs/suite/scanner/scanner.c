// scanner: counts a word in all files below a folder, in parallel.
//
// The main thread walks through the folder and lists the files; workers take
// files from the list and search them by the method of Horspool (1980). The main
// thread waits until no worker is active any more. Without -d the program makes
// a folder of files with known contents.
//
// In the buggy form the main thread sets the number of active workers after it
// has started them, and spins until it is 0. When a worker is done before, its
// step from 0 to -1 is overwritten, and the number never reaches 0.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "suite.h"

static long threads = 4, file_count = 12, kilobytes = 4, seed = 1;
static const char *word = "heddle", *folder;

static char **paths;
static long path_count, next_path;
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER; // for next_path

static long *matches; // by path
static pthread_mutex_t active_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t active_changed = PTHREAD_COND_INITIALIZER;
static volatile long active;

static char *join(const char *parent, const char *name)
{
	char *path;
	needed(asprintf(&path, "%s/%s", parent, name), "asprintf");
	return path;
}

static void list_file(const char *path)
{
	paths = realloc(paths, (path_count + 1) * sizeof *paths);
	paths[path_count++] = strdup(path);
}

// walk lists all files below a folder, except those without permission.
static void walk(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		struct stat info;
		char *entry = join(path, name);
		bool known = strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && lstat(entry, &info) == 0;
		if (known && S_ISDIR(info.st_mode))
			walk(entry);
		if (known && S_ISREG(info.st_mode))
			list_file(entry);
		free(entry);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

// count_word counts the places where the word starts.
static long count_word(const unsigned char *text, long size)
{
	long length = strlen(word), skip[256], found = 0;
	for (int c = 0; c < 256; c++)
		skip[c] = length;
	for (long i = 0; i < length - 1; i++)
		skip[(unsigned char)word[i]] = length - 1 - i;
	for (long i = 0; i + length <= size; i += skip[text[i + length - 1]])
		found += memcmp(text + i, word, length) == 0;
	return found;
}

static long count_in_file(const char *path)
{
	int file = open(path, O_RDONLY);
	struct stat info;
	if (file < 0 || fstat(file, &info) < 0) {
		fprintf(stderr, "scanner: %s: %s\n", path, strerror(errno));
		return 0;
	}
	unsigned char *text = allocate(info.st_size + 1, 1);
	long size = 0, got;
	while (size < info.st_size && (got = read(file, text + size, info.st_size - size)) > 0)
		size += got;
	close(file);
	long found = count_word(text, size);
	free(text);
	return found;
}

static long take_path(void)
{
	pthread_mutex_lock(&list_mutex);
	long i = next_path < path_count ? next_path++ : -1;
	pthread_mutex_unlock(&list_mutex);
	return i;
}

static void *work(void *unused)
{
	for (long i; (i = take_path()) >= 0;)
		matches[i] = count_in_file(paths[i]);
	pthread_mutex_lock(&active_mutex);
	active = active - 1; // race: active
	pthread_cond_signal(&active_changed);
	pthread_mutex_unlock(&active_mutex);
	return unused;
}

// await_workers returns when no worker is active.
static void await_workers(void)
{
#ifdef BUGGY
	DELAY(30);
	active = threads; // race: active
	while (active != 0) // race: active
		sched_yield();
	pthread_mutex_lock(&active_mutex);
#else
	pthread_mutex_lock(&active_mutex);
	while (active != 0)
		pthread_cond_wait(&active_changed, &active_mutex);
#endif
	pthread_mutex_unlock(&active_mutex);
}

static void scan(void)
{
	pthread_t workers[MAX_THREADS];
	matches = allocate(path_count, sizeof *matches);
#ifndef BUGGY
	active = threads;
#endif
	for (long i = 0; i < threads; i++)
		start_thread(&workers[i], work, NULL);
	await_workers();
	for (long i = 0; i < threads; i++)
		pthread_join(workers[i], NULL);
}

// write_file makes a file of random letters with the word in between, and
// returns the number of occurrences.
static long write_file(const char *path, long number)
{
	uint64_t random = random_at(seed, number);
	FILE *f = fopen(path, "w");
	needed(f ? 0 : -1, path);
	long words = 0;
	for (long size = 0; size < kilobytes * 1000;) {
		if (random_below(&random, 40) == 0) {
			size += fprintf(f, " %s ", word);
			words++;
		}
		size += fprintf(f, "%c%c", (int)('A' + random_below(&random, 26)), (int)(random_below(&random, 8) ? ' ' : '\n'));
	}
	needed(fclose(f), path);
	return words;
}

// make_folder makes folders of files and returns the number of occurrences.
static long make_folder(const char *root)
{
	long words = 0;
	for (long i = 0; i < file_count; i++) {
		char name[32];
		snprintf(name, sizeof name, "%ld", i % 4);
		char *parent = join(root, name);
		if (i < 4)
			needed(mkdir(parent, 0700), parent);
		snprintf(name, sizeof name, "%ld.txt", i);
		char *path = join(parent, name);
		words += write_file(path, i);
		free(path);
		free(parent);
	}
	return words;
}

static void remove_folder(const char *root)
{
	for (long i = 0; i < path_count; i++)
		needed(unlink(paths[i]), paths[i]);
	for (long i = 0; i < 4 && i < file_count; i++) {
		char name[32];
		snprintf(name, sizeof name, "%ld", i);
		char *parent = join(root, name);
		needed(rmdir(parent), parent);
		free(parent);
	}
	needed(rmdir(root), root);
}

// check scans the files again, one after the other, and returns the sum.
static long check(long expected)
{
	long sum = 0;
	for (long i = 0; i < path_count; i++) {
		long again = count_in_file(paths[i]);
		if (matches[i] != again)
			wrong("%s has %ld matches, not %ld", paths[i], again, matches[i]);
		sum += matches[i];
	}
	if (expected >= 0 && sum != expected)
		wrong("%ld matches were found of %ld", sum, expected);
	return sum;
}

int main(int argc, char **argv)
{
	const struct argument known[] = {
		THREADS(&threads),
		TEXT('w', "WORD", &word),
		TEXT('d', "FOLDER", &folder),
		NUMBER('n', "FILES", &file_count, 1, 100000),
		NUMBER('k', "KILOBYTES", &kilobytes, 1, 100000),
		NUMBER('s', "SEED", &seed, 0, 1000000),
		{0},
	};
	read_arguments(argc, argv, known);
	for (const char *c = word; *c; c++)
		if (!islower((unsigned char)*c) && !folder)
			usage_error(known); // the folder that is made has no other small letters
	long expected = -1;
	char *own = join(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", "scanner-XXXXXX");
	if (folder == NULL) {
		needed(mkdtemp(own) ? 0 : -1, own);
		expected = make_folder(own);
	}
	needed(access(folder ? folder : own, R_OK | X_OK), folder ? folder : own);
	walk(folder ? folder : own);

	scan();

	printf("scanner: %ld matches in %ld files, correct\n", check(expected), path_count);
	if (folder == NULL)
		remove_folder(own);
	for (long i = 0; i < path_count; i++)
		free(paths[i]);
	free(paths);
	free(matches);
	free(own);
	return 0;
}
