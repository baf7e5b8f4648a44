// Shared words whose accesses happen in program order as far as the compiler is
// concerned, and the fences that a memory model weaker than SC needs.
//
// load and store are C11's relaxed atomic accesses, each one MOV instruction,
// with a compiler barrier on both sides: gcc neither moves, merges, splits nor
// drops them, so only the processor can change their order. order_stores keeps
// earlier stores before later ones (SFENCE, which TSO does not need and PSO
// does), order_all keeps earlier stores before later loads as well (MFENCE). In
// the buggy form both are compiler barriers only: the processor is free.
#ifndef MODEL_H
#define MODEL_H

#include <sched.h>

#include "suite.h"

#define COMPILER_BARRIER() __asm__ __volatile__("" ::: "memory")

static inline long load(const long *from)
{
	COMPILER_BARRIER();
	long value = __atomic_load_n(from, __ATOMIC_RELAXED);
	COMPILER_BARRIER();
	return value;
}

static inline void store(long *to, long value)
{
	COMPILER_BARRIER();
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
	COMPILER_BARRIER();
}

static inline void order_stores(void)
{
#ifdef BUGGY
	COMPILER_BARRIER();
#else
	__asm__ __volatile__("sfence" ::: "memory");
#endif
}

static inline void order_all(void)
{
#ifdef BUGGY
	COMPILER_BARRIER();
#else
	__asm__ __volatile__("mfence" ::: "memory");
#endif
}

// relax is for loops that wait for another thread. Sometimes it yields the
// processor, so that the loop ends soon on a busy host.
static inline void relax(void)
{
	static __thread unsigned times;
	__asm__ __volatile__("pause" ::: "memory");
	if (++times % 64 == 0)
		sched_yield();
}

// Words that different threads write lie in different cache lines.
struct word {
	_Alignas(64) long value;
};

#endif
