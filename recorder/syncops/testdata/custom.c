// A program with locks of its own, which logs its operations.
#include "selflog.h"

#define KEEP __attribute__((noinline, noclone, used))

static int first, second;
int gates;

KEEP void spin_take(int *lock)
{
	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
}

KEEP void spin_give(int *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

KEEP int spin_try(int unused, int *lock)
{
	__asm__ volatile("" ::"r"(unused));
	return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

KEEP static void gate(void)
{
	pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&inside); // part of the gate
	gates++;
	pthread_mutex_unlock(&inside);
}

static void *work(void *number)
{
	self = (int)(long)number;
	for (int i = 0; i < 5; i++) {
		spin_take(&first);
		say("custom_acquire first");
		say("custom_acquire second %d", spin_try(0, &second));
		say("custom_acquire second %d", spin_try(0, &second));
		spin_give(&second);
		say("custom_release second");
		spin_give(&first);
		say("custom_release first");
		gate();
		say("custom gate");
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	tell();
	return 0;
}
