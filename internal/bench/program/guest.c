// The guest whose speed bench measures: guest cpu N | threads N | mappings N | mprotect N | spin N | pause N
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 1 << 16, PAGE = 4096 };

static uint32_t table[WORDS];
static volatile double sink;

// One round of integer, floating-point and memory work, about 30 million
// instructions.
static uint32_t work(uint32_t seed) {
	double sum = 0;
	for (int i = 0; i < 2000000; i++) {
		seed = seed * 1664525u + 1013904223u;
		uint32_t *word = &table[seed >> 16];
		*word = (*word << 5 | *word >> 27) ^ seed;
		if (*word & 1) sum += *word * 0.5;
		else sum = sum * 0.25 + i;
	}
	sink = sum;
	return seed;
}

static void *count(void *arg) {
	uint64_t n = 0;
	for (int i = 0; i < 1000000; i++) n += (uintptr_t)arg ^ (n << 3);
	return (void *)n;
}

static void threads(int n) {
	pthread_t t[1024];
	for (int i = 0; i < n; i++) pthread_create(&t[i], 0, count, (void *)(uintptr_t)i);
	for (int i = 0; i < n; i++) pthread_join(t[i], 0);
}

// Neighbours differ in their protection, so that each is a mapping of its own.
static void mappings(int n) {
	for (int i = 0; i < n; i++) {
		char *p = mmap(0, PAGE, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) exit(1);
		sink += *(volatile char *)p;
	}
	uint32_t seed = 1;
	for (int i = 0; i < 40; i++) seed = work(seed);
}

static void protect(int n) {
	volatile char *p = mmap(0, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset((char *)p, 1, 16 * PAGE);
	for (int i = 0; i < n; i++) {
		volatile char *page = p + i % 16 * PAGE;
		mprotect((char *)page, PAGE, i / 16 % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
		sink += *page;
	}
}

static volatile int waiting = 1;

static void *wait_at_once(void *arg) {
	while (waiting) {
	}
	return arg;
}

static void *wait_with_pause(void *arg) {
	while (waiting) __builtin_ia32_pause();
	return arg;
}

// A thread spins for n milliseconds.
static void spin(int n, void *(*wait)(void *)) {
	pthread_t t;
	pthread_create(&t, NULL, wait, NULL);
	usleep(n * 1000);
	waiting = 0;
	pthread_join(t, NULL);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	int n = atoi(argv[2]);
	if (!strcmp(argv[1], "cpu")) {
		uint32_t seed = 1;
		for (int i = 0; i < n; i++) seed = work(seed);
	} else if (!strcmp(argv[1], "threads")) {
		threads(n);
	} else if (!strcmp(argv[1], "mappings")) {
		mappings(n);
	} else if (!strcmp(argv[1], "mprotect")) {
		protect(n);
	} else if (!strcmp(argv[1], "spin")) {
		spin(n, wait_at_once);
	} else if (!strcmp(argv[1], "pause")) {
		spin(n, wait_with_pause);
	} else {
		return 2;
	}
	return 0;
}
