// The futex system call, raw: glibc has no wrapper for it.
#ifndef FUTEX_H
#define FUTEX_H

#include "conformance.h"

#include <limits.h>
#include <linux/futex.h>

static inline long futex(atomic_uint *word, int op, uint32_t val, const void *timeout_or_val2,
			 atomic_uint *word2, uint32_t val3)
{
	return syscall(SYS_futex, word, op, val, timeout_or_val2, word2, val3);
}

// count_sleepers counts the threads that wait for a word by requeueing them to the same
// word.
static inline long count_sleepers(atomic_uint *word, int flags)
{
	long n = futex(word, FUTEX_REQUEUE | flags, 0, (void *)INT_MAX, word, 0);
	CHECK(n >= 0);
	return n;
}

// gather moves n waiters from one word to another, one at a time, and returns
// when n more sleep on the second: FUTEX_REQUEUE moves sleepers only,
// so a program knows then that its threads are asleep. Linux may still wake one for an
// earlier event, such as a page fault that had to wait for another thread; that thread
// then queues again on the first word. The n waiters must stay for a while.
static inline void gather(atomic_uint *from, atomic_uint *to, int n, int flags)
{
	long before = count_sleepers(to, flags);
	for (int quiet = 0; quiet < 5; quiet++) {
		while (count_sleepers(to, flags) < before + n) {
			long r = futex(from, FUTEX_REQUEUE | flags, 0, (void *)1, to, 0);
			CHECK(r == 0 || r == 1);
			if (r == 0)
				sched_yield();
			quiet = 0;
		}
		nap();
	}
}

#endif
