// Spin locks: mutual exclusion of threads and, process-shared, of processes; trylock.
#include "conformance.h"

struct shared {
	pthread_spinlock_t lock;
	int counter;
};

static struct shared *s;

static void *work(void *arg)
{
	for (int i = 0; i < 100; i++) {
		OK(pthread_spin_lock(&s->lock));
		s->counter += (intptr_t)arg;
		OK(pthread_spin_unlock(&s->lock));
	}
	return NULL;
}

static void *try(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pthread_spin_trylock(&s->lock);
}

int main(void)
{
	s = shared_memory(sizeof *s);
	SHOWE(pthread_spin_init(&s->lock, PTHREAD_PROCESS_SHARED));
	SHOWE(pthread_spin_trylock(&s->lock));
	printf("other: %s\n", errname((intptr_t)finish(start(try, NULL))));
	SHOWE(pthread_spin_unlock(&s->lock));
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(work, (void *)1);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		work((void *)1000);
		_exit(0);
	}
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	CHECK(wait_for(pid) == 0);
	printf("counter %d\n", s->counter);
	SHOWE(pthread_spin_destroy(&s->lock));
	return 0;
}
