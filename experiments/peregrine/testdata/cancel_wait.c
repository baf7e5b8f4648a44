/* Threads wait on a condition, some with deadlines, and are canceled there. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int tickets, taken, cleaned, racy;
static void undo(void *a) { cleaned++; pthread_mutex_unlock(&m); }
static void *waiter(void *a) {
	long n = (long)a;
	for (int i = 0; ; i++) {
		pthread_mutex_lock(&m);
		pthread_cleanup_push(undo, 0);
		while (!tickets) {
			if (n % 2) pthread_cond_wait(&c, &m);
			else { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_nsec += 3000; if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++; pthread_cond_timedwait(&c, &m, &t); }
		}
		tickets--; taken++;
		pthread_cleanup_pop(0);
		pthread_mutex_unlock(&m);
		racy++;
	}
	return 0;
}
int main(int argc, char **argv) {
	enum { N = 6 };
	pthread_t t[N]; void *r; int canceled = 0;
	for (long i = 0; i < N; i++) pthread_create(&t[i], 0, waiter, (void *)i);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 4; k++) {
			pthread_mutex_lock(&m); tickets += 2; if (k % 2) pthread_cond_signal(&c); else pthread_cond_broadcast(&c); pthread_mutex_unlock(&m);
			racy++;
		}
		pthread_cancel(t[i]);
		if (i % 2) { pthread_join(t[i], &r); canceled += r == PTHREAD_CANCELED; }
	}
	for (int i = 0; i < N; i += 2) { pthread_join(t[i], &r); canceled += r == PTHREAD_CANCELED; }
	printf("taken %d of 48 canceled %d cleaned %d racy %d\n", taken + tickets, canceled, cleaned, racy);
	return 0;
}
