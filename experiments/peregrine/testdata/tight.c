// Four threads that do nothing but wait for each other, or race.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#ifdef BARRIER
static atomic_int count = 4;
static volatile int sense;
static void once(int *mine)
{
	*mine = !*mine;
	if (atomic_fetch_sub(&count, 1) == 1) {
		atomic_store(&count, 4);
		sense = *mine;
		return;
	}
	while (sense != *mine) { BARRIER; }
}
#elif defined SPIN_LOCK
static pthread_spinlock_t lock;
static int n;
static void once(int *mine)
{
	pthread_spin_lock(&lock);
	n++;
	pthread_spin_unlock(&lock);
}
#else
static volatile int n;
static void once(int *mine)
{
	n++;
}
#endif

static void *work(void *arg)
{
	int mine = 0;
	for (int i = 0; i < ROUNDS; i++) once(&mine);
	return arg;
}

int main(void)
{
	pthread_t t[4];
#ifdef SPIN_LOCK
	pthread_spin_init(&lock, 0);
#endif
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	return 0;
}
