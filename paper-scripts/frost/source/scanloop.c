// The suite's scanner, which scans its folder again and again: the paper has pfscan do so
// (section 4.3.1). The results of each scan are compared with those of the first one.
#define main scanner_main
#include "scanner/scanner.c"
#undef main

int main(int argc, char **argv)
{
	long repeats = 1, first = 0;
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		TEXT('d', "FOLDER", &folder),
		NUMBER('r', "REPEATS", &repeats, 1, 100000),
		{0},
	});
	needed(folder ? 0 : -1, "a folder");
	walk(folder);
	for (long r = 0; r < repeats; r++) {
		next_path = 0;
		scan();
		long sum = 0;
		for (long i = 0; i < path_count; i++)
			sum += matches[i];
		free(matches);
		if (r == 0)
			first = sum;
		if (sum != first)
			wrong("scan %ld finds %ld words, the first one %ld", r, sum, first);
	}
	printf("scanner: %ld matches in %ld files, correct\n", first, path_count);
	return 0;
}
