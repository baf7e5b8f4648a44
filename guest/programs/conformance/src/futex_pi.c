// PI futexes, where the kernel has them: lock, trylock, unlock, hand-over; a kernel without them says ENOSYS to all.
#include "futex.h"

static atomic_uint word;
static atomic_int got;

static void *contender(void *arg)
{
	unsigned me = gettid(), free = 0;
	if (!atomic_compare_exchange_strong(&word, &free, me))
		CHECK(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	CHECK((word & FUTEX_TID_MASK) == me);
	got++;
	unsigned mine = me;
	if (!atomic_compare_exchange_strong(&word, &mine, 0))
		CHECK(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return arg;
}

int main(void)
{
	unsigned me = gettid();
	long r = futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	if (r == -1) {
		CHECK(errno == ENOSYS);
		CHECK(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == ENOSYS);
		CHECK(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == ENOSYS);
		CHECK(word == 0);
		printf("consistent\n");
		return 0;
	}
	CHECK(word == me);
	CHECK(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EDEADLK);
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(contender, NULL);
	nap();
	CHECK(got == 0);
	unsigned mine = me;
	if (!atomic_compare_exchange_strong(&word, &mine, 0))
		CHECK(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	CHECK(got == 3 && word == 0);
	CHECK(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EPERM);
	CHECK(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0 && word == me);
	printf("consistent\n");
	return 0;
}
