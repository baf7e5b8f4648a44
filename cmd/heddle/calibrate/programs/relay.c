// The costs of passing the turn: a semaphore that no thread waits for, one that a
// thread on another processor sleeps on, and a flag that it spins on.
#include "measure.h"

#include <semaphore.h>
#include <stdatomic.h>

static sem_t there, back;
static _Alignas(64) atomic_long flag;

static void uncontended(long n) {
	for (long i = 0; i < n; i++) {
		sem_post(&there);
		sem_wait(&there);
	}
}

enum { BATCHES = 40, ROUNDS = 200 };

static int second;

static void *sleeper(void *unused) {
	stay_on(second);
	for (int i = 0; i < BATCHES * ROUNDS; i++) {
		sem_wait(&there);
		sem_post(&back);
	}
	return unused;
}

static void sleep_round(int round) {
	(void)round;
	sem_post(&there);
	sem_wait(&back);
}

// Waits until the flag has a value. Where another program takes the processor
// from the one that is to set it, giving it up is quicker than waiting on.
static void spin_until(long value) {
	for (int i = 0; atomic_load_explicit(&flag, memory_order_acquire) != value; i++) {
		__builtin_ia32_pause();
		if (i == 100000) i = sched_yield();
	}
}

static void *spinner(void *unused) {
	stay_on(second);
	for (long i = 0; i < BATCHES * ROUNDS; i++) {
		spin_until(2 * i + 1);
		atomic_store_explicit(&flag, 2 * i + 2, memory_order_release);
	}
	return unused;
}

static void spin_round(int round) {
	atomic_store_explicit(&flag, 2L * round + 1, memory_order_release);
	spin_until(2L * round + 2);
}

// The time of one pass from thread to thread: half a round.
static double relay(void *(*other)(void *), void (*one)(int)) {
	double times[BATCHES];
	pthread_t thread;
	if (pthread_create(&thread, NULL, other, NULL)) exit(1);
	for (int i = 0; i < BATCHES; i++) {
		double start = wall_ns();
		for (int k = 0; k < ROUNDS; k++) one(i * ROUNDS + k);
		times[i] = (wall_ns() - start) / ROUNDS / 2;
	}
	pthread_join(thread, NULL);
	return median(times, BATCHES);
}

int main(void) {
	int first;
	alarm(60);
	sem_init(&there, 0, 0);
	sem_init(&back, 0, 0);
	report("semaphore_wait", least_ns(uncontended, 200000));
	if (!two_processors(&first, &second)) {
		printf("semaphore_wake -\nspin_check -\n");
		return 0;
	}
	stay_on(first);
	report("semaphore_wake", relay(sleeper, sleep_round));
	report("spin_check", relay(spinner, spin_round));
	return 0;
}
