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

// gather moves n waiters from one word to another, one at a time, and returns
// when exactly so many sleep on the second: FUTEX_REQUEUE moves sleepers only,
// so this is how a program knows that its threads are asleep.
static inline void gather(atomic_uint *from, atomic_uint *to, int n, int flags)
{
	for (int moved = 0; moved < n;) {
		long r = futex(from, FUTEX_REQUEUE | flags, 0, (void *)1, to, 0);
		CHECK(r == 0 || r == 1);
		moved += r;
		if (r == 0)
			sched_yield();
	}
}

#endif
