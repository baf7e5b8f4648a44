// The ways out: return, exit, _exit, quick_exit, on_exit, handlers that register more, constructors and destructors.
#include "conformance.h"

__attribute__((constructor(101))) static void first(void) { printf("constructor 101\n"); }
__attribute__((constructor(102))) static void second(void) { printf("constructor 102\n"); }
__attribute__((destructor(101))) static void last(void) { printf("destructor 101\n"); }
__attribute__((destructor(102))) static void before_last(void) { printf("destructor 102\n"); }

static void a(void) { printf("a\n"); }
static void b(void) { printf("b registers a again\n"); atexit(a); }
static void quick(void) { printf("quick\n"); }
static void with_status(int status, void *arg) { printf("on_exit %d %s\n", status, (char *)arg); }
static void exits(void) { printf("exit within a handler\n"); exit(44); }

static void in_child(const char *what, void (*f)(void))
{
	printf("-- %s\n", what);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		f();
		_exit(99);
	}
	printf("%s\n", status_text(wait_for(pid)));
}

static void by_exit(void) { atexit(a); atexit(b); on_exit(with_status, "argument"); exit(3); }
static void by_quick_exit(void) { atexit(a); at_quick_exit(quick); quick_exit(5); }
static void by__exit(void) { atexit(a); _exit(6); }
static void twice(void) { atexit(a); atexit(exits); exit(7); }
static void many(void)
{
	for (int i = 0; i < 40; i++)
		atexit(i % 20 ? quick : a);
	exit(8);
}

static void flushed(void)
{
	// Unwritten output is written at exit, not at _exit.
	FILE *f = fopen("out", "w");
	fprintf(f, "buffered");
	exit(0);
}

static void not_flushed(void)
{
	FILE *f = fopen("out", "w");
	fprintf(f, "buffered");
	_exit(0);
}

int main(void)
{
	char buf[20];
	in_child("exit", by_exit);
	in_child("quick_exit", by_quick_exit);
	in_child("_exit", by__exit);
	in_child("exit in a handler", twice);
	in_child("forty handlers", many);
	in_child("flushed", flushed);
	CHECK(read_file("out", buf, sizeof buf) >= 0);
	printf("[%s]\n", buf);
	in_child("not flushed", not_flushed);
	CHECK(read_file("out", buf, sizeof buf) >= 0);
	printf("[%s]\n", buf);
	atexit(a);
	printf("-- return\n");
	return 0;
}
