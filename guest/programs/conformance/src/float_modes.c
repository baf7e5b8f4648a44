// SSE floating point: rounding modes, exception flags, conversions at their limits, NaN rules, denormals, DAZ.
// link: -lm
#include "conformance.h"

#include <fenv.h>
#include <math.h>

// The operations are instructions, not C: the compiler must neither move nor
// fold them.
#define BINARY(name, insn)                                                               \
	__attribute__((noinline)) static double name(double a, double b)                 \
	{                                                                                \
		__asm__ volatile(insn " %1, %0" : "+x"(a) : "x"(b) : "memory");          \
		return a;                                                                \
	}

#define CONVERT(name, insn, from, fc, to, tc)                                            \
	__attribute__((noinline)) static to name(from a)                                 \
	{                                                                                \
		to r;                                                                    \
		__asm__ volatile(insn " %1, %0" : "=" tc(r) : fc(a) : "memory");         \
		return r;                                                                \
	}

BINARY(add, "addsd")
BINARY(sub, "subsd")
BINARY(mul, "mulsd")
BINARY(div_, "divsd")
BINARY(min, "minsd")
BINARY(max, "maxsd")
BINARY(root, "sqrtsd")
CONVERT(to_float, "cvtsd2ss", double, "x", float, "x")
CONVERT(to_double, "cvtss2sd", float, "x", double, "x")
CONVERT(to_int, "cvtsd2si", double, "x", int, "r")
CONVERT(cut_int, "cvttsd2si", double, "x", int, "r")
CONVERT(to_long, "cvtsd2si", double, "x", long, "r")
CONVERT(cut_long, "cvttsd2si", double, "x", long, "r")
CONVERT(from_long, "cvtsi2sdq", long, "r", double, "x")
CONVERT(float_from_long, "cvtsi2ssq", long, "r", float, "x")

static uint32_t get_csr(void)
{
	uint32_t v;
	__asm__ volatile("stmxcsr %0" : "=m"(v) : : "memory");
	return v;
}

static void set_csr(uint32_t v)
{
	__asm__ volatile("ldmxcsr %0" : : "m"(v) : "memory");
}

static void flags(const char *what)
{
	int f = fetestexcept(FE_ALL_EXCEPT);
	printf("%s:%s%s%s%s%s\n", what, f & FE_INVALID ? " invalid" : "", f & FE_DIVBYZERO ? " divbyzero" : "",
	       f & FE_OVERFLOW ? " overflow" : "", f & FE_UNDERFLOW ? " underflow" : "", f & FE_INEXACT ? " inexact" : "");
	feclearexcept(FE_ALL_EXCEPT);
}

static void bits(const char *what, double d)
{
	uint64_t u;
	memcpy(&u, &d, 8);
	printf("%s %016lx\n", what, u);
}

static double from_bits(uint64_t u)
{
	double d;
	memcpy(&d, &u, 8);
	return d;
}

static double huge = 0x1p1023, small = 0x1p-1022, inf = INFINITY;

int main(void)
{
	static const struct {
		const char *name;
		int mode;
	} mode[] = {{"nearest", FE_TONEAREST}, {"down", FE_DOWNWARD}, {"up", FE_UPWARD}, {"zero", FE_TOWARDZERO}};
	for (int i = 0; i < LEN(mode); i++) {
		CHECK(fesetround(mode[i].mode) == 0 && fegetround() == mode[i].mode);
		volatile double a = div_(1, 3), b = div_(-1, 3), s = root(0, 3), d = add(1, 0x1p-60), o = mul(huge, -4), u = mul(small, 0x1.5p-52);
		volatile float f = to_float(1.1);
		volatile int c = to_int(2.5), n = to_int(-2.5), t = cut_int(-2.9);
		volatile long l = to_long(1e10 + 0.5);
		volatile double w = from_long(INT64_MAX);
		volatile float g = float_from_long(0x1000001);
		fesetround(FE_TONEAREST);
		printf("%s: %a %a %a %a %a %a %a\n", mode[i].name, a, b, s, d, o, u, f);
		printf("  %d %d %d %ld %a %a\n", c, n, t, l, w, g);
	}
	feclearexcept(FE_ALL_EXCEPT);
	add(1, 3);
	flags("exact");
	div_(1, 3);
	flags("1/3");
	div_(1, 0);
	flags("1/0");
	div_(0, 0);
	flags("0/0");
	mul(huge, 4);
	flags("overflow");
	div_(small, 3);
	flags("underflow");
	div_(small, 2);
	flags("denormal, exact");
	root(0, -1);
	flags("root of -1");
	sub(inf, inf);
	flags("inf - inf");
	to_float(huge);
	flags("to float, too large");
	printf("%x\n", to_int(huge));
	flags("to int, too large");
	printf("%lx\n", cut_long(-huge));
	flags("to long, too large");
	cut_int(2.5);
	flags("to int, inexact");

	double q = from_bits(0x7ff8000000001234), s = from_bits(0x7ff0000000005678);
	bits("q+1", add(q, 1));
	bits("1+q", add(1, q));
	flags("quiet");
	bits("s+1", add(s, 1));
	bits("1+s", add(1, s));
	flags("signalling");
	bits("min(q,1)", min(q, 1));
	bits("min(1,q)", min(1, q));
	bits("max(s,1)", max(s, 1));
	bits("min(-0,0)", min(-0.0, 0.0));
	bits("max(-0,0)", max(-0.0, 0.0));
	bits("root(-1)", root(0, -1));
	bits("root(-0)", root(0, -0.0));
	bits("0*inf", mul(0, inf));
	bits("to float and back", to_double(to_float(q)));
	feclearexcept(FE_ALL_EXCEPT);
	volatile double one = 1, nan = q;
	printf("compare %d %d %d\n", one == nan, one != nan, isunordered(one, nan));
	flags("quiet comparison");
	printf("compare %d %d\n", one < nan, one >= nan);
	flags("ordered comparison");

	printf("%x %x %lx %lx %lx\n", cut_int(3e9), cut_int(q), cut_long(1e19), cut_long(-9e18), to_long(inf));
	volatile double v18 = 1.8e19, v5 = 5.9, v4 = 4e9;
	printf("%lu %lu %u\n", (unsigned long)v18, (unsigned long)v5, (unsigned)v4);
	volatile uint64_t most = UINT64_MAX, odd = 0x20000000000001ul;
	printf("%a %a %a\n", (double)most, (double)odd, (float)most);

	// Denormal operands count as zero when MXCSR says so.
	uint32_t old = get_csr();
	for (int daz = 0; daz <= 0x40; daz += 0x40) {
		set_csr(0x1f80 | daz);
		volatile double made = div_(small, 4), used = mul(0x1p-1070, 0x1p100), sum = add(0x1p-1070, 0x1p-1070);
		set_csr(old);
		printf("mxcsr %04x: made %a, used %a, sum %a\n", daz, made, used, sum);
	}
	// Approximations have a bounded error.
	float r;
	__asm__ volatile("rcpss %1, %0" : "=x"(r) : "x"(3.0f));
	printf("approximate reciprocal %d\n", fabsf(r * 3 - 1) < 0x1p-11f);
	__asm__ volatile("rsqrtss %1, %0" : "=x"(r) : "x"(2.0f));
	printf("approximate root %d\n", fabsf(r * r * 2 - 1) < 0x1p-10f);
	return 0;
}
