// x87: logarithms, exponentials and angles of 64 bits, which agree with the double functions when rounded; exception flags.
// link: -lm
#include "conformance.h"

#include <math.h>

static unsigned flags_of_quotient(long double a, long double b)
{
	volatile long double x = a, y = b;
	uint16_t status;
	__asm__ volatile("fnclex");
	volatile long double quotient = x / y;
	(void)quotient;
	__asm__ volatile("fnstsw %0" : "=a"(status));
	return status & 0x3f;
}

static void show(const char *name, long double wide, double narrow)
{
	double rounded = (double)wide;
	printf("%s: %.13a, wider than a double %d, near %d\n", name, rounded, wide != rounded, fabs(rounded - narrow) <= fabs(narrow) * 0x1p-52);
}

int main(void)
{
	static const double xs[] = {0.1, 0.7, 1.3, 2.5, 17.25, 1e9 / 3};
	printf("0/0 %#x, 1/0 %#x, 1/3 %#x, 1/2 %#x\n", flags_of_quotient(0, 0), flags_of_quotient(1, 0), flags_of_quotient(1, 3), flags_of_quotient(1, 2));
	for (unsigned i = 0; i < sizeof xs / sizeof xs[0]; i++) {
		volatile long double x = xs[i];
		double d = xs[i];
		show("exp", expl(-x), exp(-d));
		show("log", logl(x), log(d));
		show("log2", log2l(x), log2(d));
		show("pow", powl(x, 0.25L), pow(d, 0.25));
		show("atan", atanl(x), atan(d));
		printf("remainder %La, scaled %La, exponent %La\n", fmodl(x * 1e15L, 0.3L), scalbnl(x, 100), logbl(x));
	}
	return 0;
}
