// The registers of AVX, for programs of level x86-64-v3.
#ifndef AVX_H
#define AVX_H

#include "conformance.h"

#include <cpuid.h>

// A register YMM as two halves of 16 bytes.
struct ymm {
	uint64_t low[2], high[2];
};

// set_all gives the registers YMM0 to YMM15 values that follow from a number.
#define SET(n) "vmovdqu " #n "*32(%0), %%ymm" #n "\n"
#define GET(n) "vmovdqu %%ymm" #n ", " #n "*32(%0)\n"
#define ALL(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
		 "xmm12", "xmm13", "xmm14", "xmm15", "memory"

static inline void fill(struct ymm *r, uint64_t seed)
{
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 2; k++) {
			r[i].low[k] = seed * 0x9e3779b97f4a7c15 + 16 * i + k;
			r[i].high[k] = ~(seed * 0xc2b2ae3d27d4eb4f) - 16 * i - k;
		}
}

// set_call makes a system call with these registers, and returns what they are after it.
static inline long set_call(struct ymm *r, long number, long a, long b, long c)
{
	long result;
	__asm__ volatile(ALL(SET) : : "r"(r) : CLOBBERS);
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	__asm__ volatile(ALL(GET) : : "r"(r) : CLOBBERS);
	return result;
}

// high_at is where an image of XSAVE has the upper halves.
static inline unsigned high_at(void)
{
	unsigned size, at, c, d;
	CHECK(__get_cpuid_count(13, 2, &size, &at, &c, &d) && size == 256);
	return at;
}

#endif
