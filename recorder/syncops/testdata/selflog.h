// A test program's log of itself: one line for each operation that it
// called, in the order of each thread, written at the end. The lines of thread
// number n begin with "n ".
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 64, MAX_LINES = 4096 };

static char *lines[MAX_THREADS][MAX_LINES];
static int counts[MAX_THREADS];
static __thread int self;

static void say(const char *format, ...)
{
	char *line = (char *)malloc(96);
	va_list list;
	va_start(list, format);
	vsnprintf(line, 96, format, list);
	va_end(list);
	lines[self][counts[self]++] = line;
}

static void tell(void)
{
	for (int i = 0; i < MAX_THREADS; i++)
		for (int n = 0; n < counts[i]; n++)
			printf("%d %s\n", i, lines[i][n]);
	fflush(stdout);
}

// CALL makes a call that returns int and says its name and result.
#define CALL(name, expression) \
	do { \
		int result_ = (expression); \
		say("%s %d", name, result_); \
	} while (0)
