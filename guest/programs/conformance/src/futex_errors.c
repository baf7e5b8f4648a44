// Futex calls that are refused: bad addresses, unaligned words, bad times, zero bitsets, unknown operations.
#include "futex.h"

int main(void)
{
	static _Alignas(8) atomic_uint word[2];
	atomic_uint *odd = (atomic_uint *)((char *)word + 2);
	atomic_uint *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	atomic_uint *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	atomic_uint *high = (atomic_uint *)0xffff800000000000ul;
	CHECK(hole != MAP_FAILED && ro != MAP_FAILED);
	struct timespec bad = {0, SEC}, negative = {-1, 0}, zero = {0, 0};

	SHOW(futex(word, FUTEX_WAIT, 1, NULL, NULL, 0));
	SHOW(futex(odd, FUTEX_WAIT, 0, NULL, NULL, 0));
	SHOW(futex(odd, FUTEX_WAKE, 1, NULL, NULL, 0));
	SHOW(futex(odd, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(NULL, FUTEX_WAIT, 0, NULL, NULL, 0));
	SHOW(futex(NULL, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(hole, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(hole, FUTEX_WAIT, 0, NULL, NULL, 0));
	SHOW(futex(hole, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(hole, FUTEX_WAKE, 1, NULL, NULL, 0));
	SHOW(futex(high, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(ro, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(ro, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(word, FUTEX_WAIT_PRIVATE, 0, &bad, NULL, 0));
	SHOW(futex(word, FUTEX_WAIT_PRIVATE, 0, &negative, NULL, 0));
	SHOW(futex(word, FUTEX_WAIT_PRIVATE, 0, &zero, NULL, 0));
	SHOW(futex(word, FUTEX_WAIT_PRIVATE, 0, hole, NULL, 0));
	SHOW(futex(word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(word, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, NULL, 1));
	SHOW(futex(word, FUTEX_REQUEUE_PRIVATE, 0, (void *)1, NULL, 0));
	SHOW(futex(word, FUTEX_REQUEUE_PRIVATE, 0, (void *)1, odd, 0));
	SHOW(futex(word, FUTEX_REQUEUE_PRIVATE, -1, (void *)1, &word[1], 0));
	SHOW(futex(word, FUTEX_REQUEUE_PRIVATE, 0, (void *)-1, &word[1], 0));
	SHOW(futex(word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)1, &word[1], 9));
	SHOW(futex(hole, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)1, &word[1], 0));
	SHOW(futex(word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, hole, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	SHOW(futex(word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, odd, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	SHOW(futex(word, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0));
	SHOW(futex(word, 2, 1, NULL, NULL, 0)); // FUTEX_FD is gone
	SHOW(futex(word, 77, 1, NULL, NULL, 0));
	SHOW(futex(word, FUTEX_WAKE, 0, NULL, NULL, 0));
	printf("word %u %u\n", word[0], word[1]);
	return 0;
}
