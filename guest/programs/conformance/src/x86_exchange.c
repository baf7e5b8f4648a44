// CMPXCHG, CMPXCHG8B and CMPXCHG16B, equal and unequal: results, upper halves of registers, and flags.
#include "conformance.h"

static uint64_t m[2] __attribute__((aligned(16)));

// The flags before are those of 0 - 1: CF, PF, AF and SF.
#define BEFORE "xor %%r8d, %%r8d\n cmp $1, %%r8d\n"

static void show(const char *what, unsigned long flags, uint64_t a, uint64_t d)
{
	printf("%s: flags %03lx, %016lx %016lx, memory %016lx %016lx\n", what, flags & 0x8d5, a, d, m[0], m[1]);
}

static void narrow(bool equal)
{
	unsigned long f;
	uint64_t a = equal ? 0xffffffff00000005 : 0xffffffff00000006, b = 0xeeeeeeee00000009;
	m[0] = 0xdddddddd00000005;
	m[1] = 7;
	__asm__ volatile(BEFORE "lock cmpxchg %k3, %1\n pushf\n pop %0" : "=r"(f), "+m"(m[0]), "+a"(a) : "r"(b) : "r8", "cc");
	show("cmpxchg of 4 bytes", f, a, b);
	m[0] = 5;
	a = equal ? 5 : 6;
	__asm__ volatile(BEFORE "lock cmpxchg %3, %1\n pushf\n pop %0" : "=r"(f), "+m"(m[0]), "+a"(a) : "r"(b) : "r8", "cc");
	show("cmpxchg of 8 bytes", f, a, b);
}

static void wide(bool equal)
{
	unsigned long f;
	uint64_t a = equal ? 0xffffffff00000002 : 0xffffffff00000003, d = 0xffffffff00000001;
	m[0] = 0x100000002;
	m[1] = 7;
	__asm__ volatile(BEFORE "lock cmpxchg8b %1\n pushf\n pop %0"
			 : "=r"(f), "+m"(m[0]), "+a"(a), "+d"(d)
			 : "b"(9ul), "c"(3ul)
			 : "r8", "cc");
	show("cmpxchg8b", f, a, d);
	m[0] = 5;
	a = equal ? 5 : 6;
	d = 7;
	__asm__ volatile(BEFORE "lock cmpxchg16b %1\n pushf\n pop %0"
			 : "=r"(f), "+m"(m), "+a"(a), "+d"(d)
			 : "b"(9ul), "c"(3ul)
			 : "r8", "cc");
	show("cmpxchg16b", f, a, d);
}

int main(void)
{
	for (int equal = 0; equal < 2; equal++) {
		narrow(equal);
		wide(equal);
	}
	return 0;
}
