// x87: 80-bit arithmetic, conversions, precision and rounding control, comparisons, special values, the register stack.
// link: -lm
#include "conformance.h"

#include <fenv.h>
#include <math.h>

static volatile long double one = 1, three = 3, ten = 10, tiny = 0x1p-16445L, big = 0x1p16383L;

static void bits(const char *what, long double v)
{
	unsigned char b[16] = {0};
	memcpy(b, &v, 10);
	printf("%s:", what);
	for (int i = 9; i >= 0; i--)
		printf("%02x", b[i]);
	printf("\n");
}

static uint16_t control(uint16_t cw)
{
	uint16_t old;
	__asm__ volatile("fnstcw %0\n fldcw %1" : "=m"(old) : "m"(cw));
	return old;
}

int main(void)
{
	bits("1/3", one / three);
	bits("10/3", ten / three);
	bits("sqrt 10", sqrtl(ten));
	bits("smallest / 2", tiny / 2);
	bits("big * 2", big * 2);
	bits("inf - inf", big * 2 - big * 2);
	bits("-0", -0.0L * one);
	bits("fmod", fmodl(1e30L, 7));
	bits("remainder", remainderl(1e20L, 7.3L));
	bits("ldexp", ldexpl(three, -16440));
	bits("scale", scalbnl(one / three, 100));
	bits("next", nextafterl(one, 2));
	bits("logb", logbl(0x1.8p-5000L));
	bits("rint", rintl(2.5L));
	bits("trunc", truncl(-2.7L));
	bits("from long", (long double)INT64_MIN);
	bits("from ulong", (long double)UINT64_MAX);
	bits("pi", strtold("3.14159265358979323846264338327950288", NULL));
	bits("decimal", strtold("1e-4940", NULL));
	printf("%.25Lg %.30Lf %La\n", one / three, one / ten, three / 16);
	printf("to long %lld %lld\n", (long long)(long double)9e18L, (long long)truncl(-123456789012345.9L));
	printf("llrint %lld %lld %lld\n", llrintl(2.5L), llrintl(3.5L), llrintl(-2.5L));
	int e;
	long double m = frexpl(0x1.23p-16400L, &e);
	bits("frexp", m);
	printf("exponent %d\n", e);

	// Rounding of each mode, at 64, 53 and 24 bits of precision.
	static const uint16_t precision[] = {0x300, 0x200, 0x000};
	for (int p = 0; p < LEN(precision); p++)
		for (int mode = 0; mode < 4; mode++) {
			long double r, n, q;
			int32_t i;
			uint16_t old = control(0x7f | precision[p] | mode << 10);
			__asm__ volatile("fldt %3\n fldt %4\n fdivrp\n fld %%st(0)\n fchs\n fxch\n fstpt %0\n fstpt %1\n"
					 "fldt %5\n fsqrt\n fld %%st(0)\n fistpl %2\n"
					 "fstpt %6\n"
					 : "=m"(r), "=m"(n), "=m"(i)
					 : "m"(three), "m"(one), "m"(ten), "m"(q)
					 : "memory");
			control(old);
			char name[40];
			snprintf(name, sizeof name, "precision %x mode %d", precision[p], mode);
			bits(name, r);
			bits("  negated", n);
			bits("  root", q);
			printf("  integer %d\n", i);
		}

	// Comparisons set ZF, PF and CF.
	static const long double v[] = {-INFINITY, -1, 0, 1, INFINITY, NAN};
	for (int i = 0; i < LEN(v); i++) {
		for (int j = 0; j < LEN(v); j++) {
			unsigned char lo, eq, un;
			__asm__ volatile("fldt %4\n fldt %3\n fucomip %%st(1), %%st\n fstp %%st(0)\n setb %0\n sete %1\n setp %2\n"
					 : "=q"(lo), "=q"(eq), "=q"(un)
					 : "m"(v[i]), "m"(v[j])
					 : "cc");
			printf("%d%d%d ", lo, eq, un);
		}
		printf("\n");
	}
	// Classification and constants.
	static const long double classes[] = {0, -1, INFINITY, NAN, 0x1p-16440L};
	for (int i = 0; i < LEN(classes); i++) {
		uint16_t sw;
		__asm__ volatile("fldt %1\n fxam\n fnstsw %0\n fstp %%st(0)\n" : "=a"(sw) : "m"(classes[i]));
		printf("class %x ", sw & 0x4700);
	}
	printf("\n");
	long double c[7];
	__asm__ volatile("fld1\n fstpt (%0)\n fldz\n fstpt 16(%0)\n fldpi\n fstpt 32(%0)\n fldl2e\n fstpt 48(%0)\n"
			 "fldl2t\n fstpt 64(%0)\n fldlg2\n fstpt 80(%0)\n fldln2\n fstpt 96(%0)\n"
			 :
			 : "r"(c)
			 : "memory");
	for (int i = 0; i < LEN(c); i++)
		bits("constant", c[i]);
	// Packed decimal.
	unsigned char bcd[10];
	long double n = -1234567890123456.0L;
	__asm__ volatile("fldt %1\n fbstp %0\n" : "=m"(bcd) : "m"(n));
	for (int i = 9; i >= 0; i--)
		printf("%02x", bcd[i]);
	printf("\n");
	return 0;
}
