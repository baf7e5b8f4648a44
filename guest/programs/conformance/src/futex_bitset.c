// FUTEX_WAIT_BITSET and FUTEX_WAKE_BITSET: only sleepers whose bits match wake; plain wake matches every bit.
#include "futex.h"

static atomic_uint word, ready[4];
static atomic_int woken[4];

static void *sleeper(void *arg)
{
	int me = (intptr_t)arg;
	ready[me] = 1;
	long r = futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 1u << me);
	CHECK(r == 0);
	woken[me]++;
	return NULL;
}

static void show(const char *what)
{
	printf("%s:", what);
	for (int i = 0; i < LEN(woken); i++)
		printf(" %d", woken[i]);
	printf("\n");
}

// wake repeats until n sleepers that match have been woken: a thread that is
// not yet asleep cannot be woken.
static void wake(unsigned bits, int n)
{
	int got = 0;
	while (got < n) {
		long r = futex(&word, FUTEX_WAKE_BITSET_PRIVATE, n - got, NULL, NULL, bits);
		CHECK(r >= 0 && r <= n - got);
		got += r;
		sched_yield();
	}
}

int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(sleeper, (void *)(intptr_t)i);
	printf("no match %ld\n", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 1u << 31));
	wake(1u << 2, 1);
	finish(t[2]);
	show("bit 2");
	wake(1u << 0 | 1u << 3, 2);
	finish(t[0]);
	finish(t[3]);
	show("bits 0 and 3");
	while (futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
		sched_yield();
	finish(t[1]);
	show("plain wake");

	// A plain wait is woken by any bit.
	t[0] = start(sleeper, (void *)0);
	wake(FUTEX_BITSET_MATCH_ANY, 1);
	finish(t[0]);
	show("any bit");
	return 0;
}
