// Integer instructions at their edges: multiply, divide, double shifts, bit tests, exchanges, conversions, conditional moves.
#include "conformance.h"

typedef unsigned __int128 u128;

static volatile uint64_t hidden = 0x8000000000000000ul;

int main(void)
{
	// Products and quotients.
	uint64_t lo, hi, q, r;
	__asm__("mul %3" : "=a"(lo), "=d"(hi) : "0"(0xfedcba9876543210ul), "r"(0x123456789abcdef1ul) : "cc");
	printf("mul %016lx%016lx\n", hi, lo);
	__asm__("imul %3" : "=a"(lo), "=d"(hi) : "0"(-5l), "r"(0x7fffffffffffffffl) : "cc");
	printf("imul %016lx%016lx\n", hi, lo);
	__asm__("div %4" : "=a"(q), "=d"(r) : "0"(0x1234567890abcdeful), "1"(0x77ul), "r"(0xfedcba9876543210ul) : "cc");
	printf("div %016lx %016lx\n", q, r);
	__asm__("idiv %4" : "=a"(q), "=d"(r) : "0"(-7l), "1"(-1l), "r"(2l) : "cc");
	printf("idiv %ld %ld\n", (long)q, (long)r);
	unsigned char of, cf;
	int32_t small;
	__asm__("imul $1000, %3, %0\n seto %1\n setc %2" : "=r"(small), "=q"(of), "=q"(cf) : "r"(3000000) : "cc");
	printf("imul overflow %d %d %d\n", small, of, cf);
	uint16_t ax = 0x1234;
	__asm__("mulb %1" : "+a"(ax) : "q"((uint8_t)0xfe) : "cc");
	printf("mulb %04x\n", ax);

	// Double shifts, bit scans, bit tests with offsets outside the operand.
	uint64_t d = 0x0123456789abcdef, s = 0xfedcba9876543210;
	__asm__("shld $20, %1, %0" : "+r"(d) : "r"(s) : "cc");
	printf("shld %016lx\n", d);
	__asm__("shrd %%cl, %1, %0" : "+r"(d) : "r"(s), "c"(77) : "cc");
	printf("shrd %016lx\n", d);
	unsigned char z;
	uint64_t n;
	__asm__("bsf %2, %0\n setz %1" : "=r"(n), "=q"(z) : "r"(0x0008000000100000ul) : "cc");
	printf("bsf %lu %d\n", n, z);
	__asm__("bsr %2, %0\n setz %1" : "=r"(n), "=q"(z) : "r"(0x0008000000100000ul) : "cc");
	printf("bsr %lu %d\n", n, z);
	n = 99;
	__asm__("bsf %2, %0\n setz %1" : "+r"(n), "=q"(z) : "r"(0ul) : "cc");
	printf("bsf of zero: Z %d, destination kept %d\n", z, n == 99);
	uint32_t bits[9] = {0};
	long offset[] = {0, 31, 32, 100, -1, -33};
	for (int i = 0; i < LEN(offset); i++) {
		__asm__("btc %2, %0\n setc %1" : "+m"(bits[4]), "=q"(cf) : "r"(offset[i]) : "cc", "memory");
		printf("%d", cf);
	}
	for (int i = 0; i < LEN(bits); i++)
		printf(" %08x", bits[i]);
	printf("\n");
	uint64_t w = 0;
	__asm__("bts $67, %0" : "+r"(w) : : "cc");
	printf("bts of a register takes the count modulo 64: %lx\n", w);

	// Exchanges.
	uint64_t m = 10, x = 5;
	__asm__("lock xadd %1, %0" : "+m"(m), "+r"(x) : : "cc");
	printf("xadd %lu %lu\n", m, x);
	__asm__("xchg %1, %0" : "+m"(m), "+r"(x));
	printf("xchg %lu %lu\n", m, x);
	uint64_t rax = 10;
	__asm__("lock cmpxchg %3, %0\n setz %2" : "+m"(m), "+a"(rax), "=q"(z) : "r"(77ul) : "cc");
	printf("cmpxchg %lu %lu %d\n", m, rax, z);
	rax = 11;
	__asm__("lock cmpxchg %3, %0\n setz %2" : "+m"(m), "+a"(rax), "=q"(z) : "r"(88ul) : "cc");
	printf("cmpxchg %lu %lu %d\n", m, rax, z);
	uint32_t e = 0xffffffff;
	rax = 0x1111111122222222;
	__asm__("lock cmpxchg %k2, %0" : "+m"(e), "+a"(rax) : "r"(1ul) : "cc");
	printf("32 bits clear the upper half: %lx\n", rax);
	uint64_t m8 = 0x1122334455667788;
	uint32_t eax = 0x55667788, edx = 0x11223344;
	__asm__("lock cmpxchg8b %0\n setz %3" : "+m"(m8), "+a"(eax), "+d"(edx), "=q"(z) : "b"(1), "c"(2) : "cc");
	printf("cmpxchg8b %lx %d\n", m8, z);
	_Alignas(16) uint64_t m16[2] = {3, 4};
	uint64_t a = 3, dd = 5;
	__asm__("lock cmpxchg16b %0\n setz %3" : "+m"(m16), "+a"(a), "+d"(dd), "=q"(z) : "b"(1ul), "c"(2ul) : "cc");
	printf("cmpxchg16b fails: %lu %lu, %lu %lu, %d\n", m16[0], m16[1], a, dd, z);
	__asm__("lock cmpxchg16b %0\n setz %3" : "+m"(m16), "+a"(a), "+d"(dd), "=q"(z) : "b"(1ul), "c"(2ul) : "cc");
	printf("cmpxchg16b succeeds: %lu %lu, %d\n", m16[0], m16[1], z);

	// Conversions, byte order, sign extension, flags by way of AH.
	uint64_t v = 0x80ul;
	int64_t sx;
	__asm__("movsbq %b1, %0" : "=r"(sx) : "q"(v));
	printf("movsbq %ld\n", sx);
	__asm__("bswap %0" : "+r"(s));
	printf("bswap %016lx\n", s);
	uint64_t acc = 0x80000000;
	__asm__("cltq" : "+a"(acc));
	printf("cltq %016lx\n", acc);
	__asm__("cqto" : "=d"(hi) : "a"(hidden));
	printf("cqto %016lx\n", hi);
	uint32_t ah;
	__asm__("mov $0xd5, %%ah\n sahf\n lahf\n movzbl %%ah, %0" : "=r"(ah) : : "rax", "cc");
	printf("sahf lahf %x\n", ah);
	// A conditional move of 32 bits clears the upper half even when it does not move.
	uint64_t cm = 0xffffffffffffffff;
	__asm__("cmp %0, %0\n cmovne %k1, %k0" : "+r"(cm) : "r"(5ul) : "cc");
	printf("cmov %lx\n", cm);
	uint64_t part = 0x1111111111111111;
	__asm__("movb $0xff, %%ah\n movw $0x2222, %%ax" : "+a"(part));
	printf("partial writes %lx\n", part);
	// Long chains of carries.
	uint64_t big[8], one[8] = {1};
	memset(big, 0xff, sizeof big);
	big[7] = 5;
	uint64_t *bp = big, *op = one;
	__asm__ volatile("clc\n mov $8, %%ecx\n 1: mov (%1), %%rax\n adc %%rax, (%0)\n lea 8(%0), %0\n lea 8(%1), %1\n dec %%ecx\n jnz 1b"
		: "+r"(bp), "+r"(op)
		:
		: "rax", "rcx", "cc", "memory");
	printf("carried %lx\n", big[7]);
	return 0;
}
