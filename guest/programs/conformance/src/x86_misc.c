// Instructions with little or no effect and state images: fences, prefetch, cache flush, long no-ops, ENDBR64, FXSAVE, MXCSR.
#include "conformance.h"

int main(void)
{
	int x = 5;
	__asm__ volatile("mfence\n lfence\n sfence\n pause\n nop\n xchg %%ax, %%ax\n endbr64\n" ::: "memory");
	__asm__ volatile("prefetcht0 %0\n prefetchnta %0\n clflush %0\n" : "+m"(x));
	// A prefetch of a wild address does nothing.
	__asm__ volatile("prefetcht1 (%0)" ::"r"(0x1234567890abcdeful));
	__asm__ volatile(".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"        // nopw
			 ".byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90\n" // many prefixes
			 ".byte 0xf3, 0x0f, 0x1e, 0xc8\n");                          // rdsspd, a no-op without shadow stacks
	printf("no effect, x %d\n", x);

	// Stack instructions.
	uint64_t a, b;
	__asm__ volatile("mov %%rsp, %0\n push %%rsp\n pop %1\n" : "=r"(a), "=r"(b));
	printf("push rsp pushes the old value %d\n", a == b);
	__asm__ volatile("lea -256(%%rsp), %%rsp\n mov %%rsp, %0\n enter $32, $0\n leave\n mov %%rsp, %1\n lea 256(%%rsp), %%rsp\n"
			 : "=&r"(a), "=r"(b)
			 :
			 : "memory");
	printf("enter and leave %d\n", a == b);
	uint16_t seg[6];
	__asm__ volatile("mov %%cs, %0\n mov %%ss, %1\n mov %%ds, %2" : "=r"(seg[0]), "=r"(seg[1]), "=r"(seg[2]));
	printf("cs %x ss %x\n", seg[0], seg[1]);
	// XLAT, loops, and the flags register's writable bits.
	unsigned char table[256], al = 200;
	for (int i = 0; i < 256; i++)
		table[i] = 255 - i;
	__asm__ volatile("xlat" : "+a"(al) : "b"(table) : "memory");
	printf("xlat %d\n", al);
	uint64_t n = 10, sum = 0;
	__asm__ volatile("1: add %0, %1\n loop 1b" : "+c"(n), "+r"(sum) : : "cc");
	printf("loop %lu\n", sum);
	uint64_t f;
	__asm__ volatile("pushf\n orq $0x200000, (%%rsp)\n popf\n pushf\n pop %0" : "=r"(f) : : "cc", "memory");
	printf("identification flag can be set %d\n", (int)(f >> 21 & 1));
	__asm__ volatile("pushf\n andq $~0x200000, (%%rsp)\n orq $0x3000, (%%rsp)\n popf\n pushf\n pop %0" : "=r"(f) : : "cc", "memory");
	printf("I/O privilege cannot %lx, interrupts on %d\n", f >> 12 & 3, (int)(f >> 9 & 1));

	// Saved and restored floating-point state; the last instruction's address,
	// bytes 8 to 23, is kept by some processors only.
	_Alignas(16) unsigned char image[512], again[512];
	uint32_t csr = 0x3f80, old, now_;
	double xmm = 0;
	memset(image, 0, sizeof image);
	memset(again, 0, sizeof again);
	__asm__ volatile("stmxcsr %0" : "=m"(old));
	__asm__ volatile("fninit\n fldpi\n fld1\n ldmxcsr %2\n movsd %3, %%xmm5\n fxsave %0\n"
			 "fninit\n xorps %%xmm5, %%xmm5\n ldmxcsr %4\n fxrstor %0\n fxsave %1\n stmxcsr %5\n movsd %%xmm5, %6\n ldmxcsr %4\n fninit\n"
			 : "+m"(image), "=m"(again)
			 : "m"(csr), "m"((double){2.5}), "m"(old), "m"(now_), "m"(xmm)
			 : "xmm5", "memory");
	uint16_t tag = image[4], cw;
	memcpy(&cw, image, 2);
	printf("control %x, tags %x, mxcsr %x, xmm5 %g, same again %d\n", cw, tag, now_, xmm, memcmp(image, again, 8) == 0 && memcmp(image + 24, again + 24, 136) == 0);
	printf("st0 %02x%02x, st1 %02x%02x\n", image[32 + 9], image[32 + 8], image[48 + 9], image[48 + 8]);
	return 0;
}
