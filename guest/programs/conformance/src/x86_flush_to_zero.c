// The flush-to-zero bit of MXCSR: results too small to be normal become zero, with underflow and inexact raised.
// engine: no (it has no flush-to-zero; docs/engine.md)
#include "conformance.h"

static void try(uint32_t bit)
{
	uint32_t csr = 0x1f80 | bit, old, after;
	double a = 0x1p-1022, b = 0x1p-1022;
	__asm__ volatile("stmxcsr %2\n ldmxcsr %4\n divsd %5, %0\n addsd %1, %1\n mulsd %6, %1\n stmxcsr %3\n ldmxcsr %2\n"
			 : "+x"(a), "+x"(b), "=m"(old), "=m"(after)
			 : "m"(csr), "x"(4.0), "x"(0x1p-20));
	printf("mxcsr %x: %a %a, flags %x\n", csr, a, b, after & 0x3d);
}

int main(void)
{
	try(0);
	try(0x8000);
	return 0;
}
