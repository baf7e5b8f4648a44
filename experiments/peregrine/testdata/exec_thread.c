/* A thread that is not the first replaces the program, twice, while others run. The programs share a page. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
static char *self; static int generation;
static volatile int *count; static volatile int racy;
static void *busy(void *a) { while (racy != -1) { ++*count; ++racy; } return 0; }
static void *add(void *a) { for (int i = 0; i < 300; i++) ++racy; return 0; }
static void *next(void *a) {
	char *n[] = {"", "1", "2"};
	for (volatile int i = 0; i < 2000; i++) ++racy;
	if (generation == 2) { printf("count %d racy %d\n", count[0], racy); exit(0); }
	execl(self, self, n[generation + 1], (char *)0);
	abort();
}
int main(int argc, char **argv) {
	pthread_t t, u[2];
	self = argv[0]; generation = argc > 1 ? atoi(argv[1]) : 0;
	if (!generation) { int f = memfd_create("x", 0); ftruncate(f, 4096); dup2(f, 9); }
	count = mmap(0, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 9, 0);
	for (int i = 0; i < 2; i++) pthread_create(&u[i], 0, add, 0);
	for (int i = 0; i < 2; i++) pthread_join(u[i], 0);
	printf("generation %d racy %d count %d\n", generation, racy, count[0]); fflush(stdout);
	pthread_create(&t, 0, busy, 0);
	pthread_create(&t, 0, next, 0);
	while (racy != -1) { ++*count; ++racy; }
}
