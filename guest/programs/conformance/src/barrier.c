// Barriers: many rounds of eight threads, one serial thread each round, process-shared barriers, refused counts.
#include "conformance.h"

enum { THREADS = 8, ROUNDS = 30 };

static pthread_barrier_t bar;
static atomic_int serial[ROUNDS], arrived[ROUNDS];

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		arrived[i]++;
		int r = pthread_barrier_wait(&bar);
		CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
		CHECK(arrived[i] == THREADS);
		if (r != 0)
			serial[i]++;
	}
	return NULL;
}

int main(void)
{
	SHOWE(pthread_barrier_init(&bar, NULL, 0));
	SHOWE(pthread_barrier_init(&bar, NULL, THREADS));
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(serial[i] == 1);
	SHOWE(pthread_barrier_destroy(&bar));
	SHOWE(pthread_barrier_init(&bar, NULL, 1));
	printf("alone: %d\n", pthread_barrier_wait(&bar) == PTHREAD_BARRIER_SERIAL_THREAD);
	SHOWE(pthread_barrier_destroy(&bar));

	pthread_barrierattr_t a;
	int v;
	OK(pthread_barrierattr_init(&a));
	OK(pthread_barrierattr_getpshared(&a, &v));
	printf("shared %d\n", v);
	SHOWE(pthread_barrierattr_setpshared(&a, 77));
	SHOWE(pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	struct {
		pthread_barrier_t b;
		atomic_int serial;
	} *s = shared_memory(sizeof *s);
	OK(pthread_barrier_init(&s->b, &a, 4));
	OK(pthread_barrierattr_destroy(&a));
	pid_t pid[3];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0) {
			for (int k = 0; k < 10; k++)
				s->serial += pthread_barrier_wait(&s->b) != 0;
			_exit(0);
		}
	}
	for (int k = 0; k < 10; k++)
		s->serial += pthread_barrier_wait(&s->b) != 0;
	for (int i = 0; i < LEN(pid); i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("serial %d\n", s->serial);
	SHOWE(pthread_barrier_destroy(&s->b));
	return 0;
}
