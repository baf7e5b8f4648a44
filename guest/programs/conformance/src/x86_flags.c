// The arithmetic flags of every byte operation on every pair of operands, and of shifts and rotates by every count.
#include "conformance.h"

enum { CF = 1, PF = 4, AF = 16, ZF = 64, SF = 128, OF = 2048, ALL = CF | PF | AF | ZF | SF | OF };

static uint32_t hash;

static inline void mix(unsigned result, unsigned long flags, unsigned defined)
{
	hash = (hash ^ (result & 0xffff) ^ (flags & defined) << 8) * 16777619u;
}

#define BINARY(name, insn, carry, defined)                                                                   \
	static void name(void)                                                                               \
	{                                                                                                    \
		for (unsigned a = 0; a < 256; a += 3)                                                        \
			for (unsigned b = 0; b < 256; b++) {                                                 \
				unsigned char r = a;                                                         \
				unsigned long f;                                                             \
				__asm__ volatile(carry "\n" insn " %2, %0\n pushf\n pop %1"                  \
						 : "+q"(r), "=r"(f)                                          \
						 : "q"((unsigned char)b)                                     \
						 : "cc");                                                    \
				mix(r, f, defined);                                                          \
			}                                                                                    \
		printf("%-14s %08x\n", #name, hash);                                                         \
	}

BINARY(add, "add", "stc", ALL)
BINARY(sub, "sub", "stc", ALL)
BINARY(adc_carry, "adc", "stc", ALL)
BINARY(adc_clear, "adc", "clc", ALL)
BINARY(sbb_carry, "sbb", "stc", ALL)
BINARY(sbb_clear, "sbb", "clc", ALL)
BINARY(cmp, "cmp", "stc", ALL)
BINARY(and, "and", "stc", ALL & ~AF)
BINARY(or, "or", "stc", ALL & ~AF)
BINARY(xor, "xor", "stc", ALL & ~AF)
BINARY(test, "test", "stc", ALL & ~AF)

#define UNARY(name, insn, carry, defined)                                                                         \
	static void name(void)                                                                               \
	{                                                                                                    \
		for (unsigned a = 0; a < 256; a++) {                                                         \
			unsigned char r = a;                                                                 \
			unsigned long f;                                                                     \
			__asm__ volatile(carry "\n" insn " %0\n pushf\n pop %1" : "+q"(r), "=r"(f) : : "cc"); \
			mix(r, f, defined);                                                                    \
		}                                                                                            \
		printf("%-14s %08x\n", #name, hash);                                                         \
	}

UNARY(inc_carry, "inc", "stc", ALL)
UNARY(inc_clear, "inc", "clc", ALL)
UNARY(dec_carry, "dec", "stc", ALL)
UNARY(neg, "neg", "stc", ALL)
UNARY(not_, "not", "stc", CF)

// Overflow is defined for counts of one, carry for counts up to the width,
// and a count of zero changes nothing.
#define SHIFT(name, insn, type, width, others)                                                               \
	static void name(void)                                                                               \
	{                                                                                                    \
		for (unsigned a = 0; a < 256; a++)                                                           \
			for (unsigned n = 0; n < 40; n++) {                                                  \
				type r = (type)(a * 0x0101010101010101ul ^ 0x1234567800abcdeful);            \
				unsigned long f;                                                             \
				unsigned used = n & (width == 64 ? 63 : 31), defined = others;               \
				if (used == 0)                                                               \
					defined = ALL & ~AF;                                                 \
				if (used > width)                                                            \
					defined &= ~CF;                                                      \
				if (used == 1)                                                               \
					defined |= OF;                                                       \
				__asm__ volatile("xor %%eax, %%eax\n stc\n" insn " %%cl, %0\n pushf\n pop %1" \
						 : "+r"(r), "=r"(f)                                          \
						 : "c"(n)                                                    \
						 : "cc", "rax");                                             \
				mix((unsigned)r ^ (unsigned)((unsigned long)r >> 16), f, defined);           \
			}                                                                                    \
		printf("%-14s %08x\n", #name, hash);                                                         \
	}

SHIFT(shl32, "shl", uint32_t, 32, CF | PF | ZF | SF)
SHIFT(shr32, "shr", uint32_t, 32, CF | PF | ZF | SF)
SHIFT(sar32, "sar", uint32_t, 32, CF | PF | ZF | SF)
SHIFT(rol32, "rol", uint32_t, 32, CF)
SHIFT(ror32, "ror", uint32_t, 32, CF)
SHIFT(rcl32, "rcl", uint32_t, 32, CF)
SHIFT(rcr32, "rcr", uint32_t, 32, CF)
SHIFT(shl64, "shl", uint64_t, 64, CF | PF | ZF | SF)
SHIFT(sar64, "sar", uint64_t, 64, CF | PF | ZF | SF)
SHIFT(rcl64, "rcl", uint64_t, 64, CF)
SHIFT(ror16, "ror", uint16_t, 16, 0)
SHIFT(rcr16, "rcr", uint16_t, 16, 0)

int main(void)
{
	add(), sub(), adc_carry(), adc_clear(), sbb_carry(), sbb_clear(), cmp(), and(), or(), xor(), test();
	inc_carry(), inc_clear(), dec_carry(), neg(), not_();
	shl32(), shr32(), sar32(), rol32(), ror32(), rcl32(), rcr32(), shl64(), sar64(), rcl64(), ror16(), rcr16();
	return 0;
}
