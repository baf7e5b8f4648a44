// The costs of instructions. "cycle" is the time of one addition that waits for the
// one before: the unit of the timing model. The addend comes from a register:
// some processors add constants at no time at all.
#include "measure.h"

#define FOUR(x) x x x x
#define SIXTEEN(x) FOUR(FOUR(x))

static long value = 1;


static void adds(long n) {
	long x = value, one = 1;
	for (long i = 0; i < n; i += 16) {
		SIXTEEN(__asm__ volatile("add %1, %0" : "+r"(x) : "r"(one));)
	}
	value = x;
}

// Additions to four chains, from a register and from a table in the first-level
// cache.
static long table[1024];

static void from_registers(long n) {
	long a = 1, b = 2, c = 3, d = 4;
	for (long i = 0; i < n; i += 16) {
		FOUR(__asm__ volatile("add %4, %0; add %4, %1; add %4, %2; add %4, %3"
		                      : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(i));)
	}
	value = a + b + c + d;
}

static void from_memory(long n) {
	long a = 1, b = 2, c = 3, d = 4;
	for (long i = 0; i < n; i += 16) {
		long *at = &table[i & 1008];
		FOUR(__asm__ volatile("add (%4), %0; add 8(%4), %1; add %2, 16(%4); add %3, 24(%4)"
		                      : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(at) : "memory");)
	}
	value = a + b + c + d;
}

static void divisions(long n) {
	unsigned x = 1;
	for (long i = 0; i < n; i++) {
		unsigned low = x | 0x40000000, high = 0;
		__asm__ volatile("div %2" : "+a"(low), "+d"(high) : "r"(3u));
		x = low;
	}
	value = x;
}

static void roots(long n) {
	double x = 1e300;
	for (long i = 0; i < n; i++) {
		__asm__ volatile("sqrtsd %0, %0" : "+x"(x));
		__asm__ volatile("mulsd %1, %0" : "+x"(x) : "x"(1e10));
	}
	value = (long)x;
}

static void products(long n) {
	double x = 1;
	for (long i = 0; i < n; i++) __asm__ volatile("mulsd %1, %0" : "+x"(x) : "x"(1.0000001));
	value = (long)x;
}

static void sines(long n) {
	long double x = 0.7L;
	for (long i = 0; i < n; i++) __asm__ volatile("fsin" : "+t"(x));
	value = (long)x;
}

static void locked(long n) {
	static long word;
	for (long i = 0; i < n; i++) __asm__ volatile("lock addq $1, %0" : "+m"(word));
}

static void fences(long n) {
	for (long i = 0; i < n; i++) __asm__ volatile("mfence" ::: "memory");
}

// Blocks of eight additions, which do not wait for each other, that end in a
// branch, with and without a count of the branches.
static __thread long branches;
#define BLOCK                                                                  \
	__asm__ volatile("add %4, %0; add %4, %1; add %4, %2; add %4, %3\n\t"       \
	                 "add %4, %0; add %4, %1; add %4, %2; add %4, %3; jz 1f; 1:" \
	                 : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(one));

static void plain_blocks(long n) {
	long a = 1, b = 2, c = 3, d = 4, one = 1;
	for (long i = 0; i < n; i += 4) { FOUR(BLOCK) }
	value = a + b + c + d;
}

static void counted_blocks(long n) {
	long a = 1, b = 2, c = 3, d = 4, one = 1;
	for (long i = 0; i < n; i += 4) { FOUR(BLOCK __asm__ volatile("incq %0" : "+m"(branches));) }
	value = a + b + c + d;
}

int main(void) {
	double cycle = least_ns(adds, 4000000);
	report("cycle", cycle);
	report("memory", least_ns(from_memory, 4000000) - least_ns(from_registers, 4000000));
	report("divide", least_ns(divisions, 200000) - cycle);
	report("sqrt", least_ns(roots, 200000) - least_ns(products, 200000));
	report("transcendental", least_ns(sines, 100000) - cycle);
	report("atomic", least_ns(locked, 200000) - cycle);
	report("fence", least_ns(fences, 100000) - cycle);
	report("branch_count", least_ns(counted_blocks, 1000000) - least_ns(plain_blocks, 1000000));
	return value == 0;
}
