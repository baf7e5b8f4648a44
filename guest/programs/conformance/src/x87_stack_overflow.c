// A load onto a full x87 register stack gives the indefinite value and sets the stack-fault bit; so does use of an empty one.
// engine: no (its x87 register stack neither overflows nor runs empty; docs/engine.md)
#include "conformance.h"

static void show(const char *what, long double v, uint16_t sw)
{
	unsigned char b[16];
	memcpy(b, &v, 10);
	printf("%s: ", what);
	for (int i = 9; i >= 0; i--)
		printf("%02x", b[i]);
	printf(", invalid %d, stack fault %d, C1 %d\n", sw & 1, sw >> 6 & 1, sw >> 9 & 1);
}

int main(void)
{
	long double v;
	uint16_t sw;
	__asm__ volatile("fninit\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fnstsw %1\n fstpt %0\n fninit\n"
			 : "=m"(v), "=a"(sw));
	show("overfull", v, sw);
	__asm__ volatile("fninit\n fld1\n fadd %%st(1), %%st\n fnstsw %1\n fstpt %0\n fninit\n" : "=m"(v), "=a"(sw));
	show("empty", v, sw);
	return 0;
}
