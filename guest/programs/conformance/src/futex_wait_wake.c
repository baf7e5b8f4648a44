// FUTEX_WAIT and FUTEX_WAKE: sleepers counted exactly, private and shared keys kept apart, unchanged word only.
#include "futex.h"

static atomic_uint word, room;
static int flags;
static atomic_int woken;

static void *sleeper(void *arg)
{
	long r = futex(&word, FUTEX_WAIT | flags, 0, NULL, NULL, 0);
	CHECK(r == 0);
	woken++;
	return arg;
}

static void round_trip(const char *name)
{
	enum { N = 6 };
	pthread_t t[N];
	woken = 0;
	for (int i = 0; i < N; i++)
		t[i] = start(sleeper, NULL);
	gather(&word, &room, N, flags);
	printf("%s\n", name);
	printf("  on the empty word %ld\n", futex(&word, FUTEX_WAKE | flags, 10, NULL, NULL, 0));
	printf("  with the other kind of key %ld\n",
	       futex(&room, FUTEX_WAKE | (flags ^ FUTEX_PRIVATE_FLAG), 10, NULL, NULL, 0));
	printf("  one %ld\n", futex(&room, FUTEX_WAKE | flags, 1, NULL, NULL, 0));
	printf("  two %ld\n", futex(&room, FUTEX_WAKE | flags, 2, NULL, NULL, 0));
	printf("  all %ld\n", futex(&room, FUTEX_WAKE | flags, INT_MAX, NULL, NULL, 0));
	printf("  nobody %ld\n", futex(&room, FUTEX_WAKE | flags, INT_MAX, NULL, NULL, 0));
	for (int i = 0; i < N; i++)
		finish(t[i]);
	CHECK(woken == N);
}

int main(void)
{
	flags = FUTEX_PRIVATE_FLAG;
	round_trip("private");
	flags = 0;
	round_trip("shared");
	word = 5;
	SHOW(futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_WAIT_PRIVATE, 4, NULL, NULL, 0));
	return 0;
}
