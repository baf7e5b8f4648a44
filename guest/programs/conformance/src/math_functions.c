// libm: elementary functions to nine digits, with any implementation that the library selects; exact ones to the last bit; gamma, Bessel.
// link: -lm
#include "conformance.h"

#include <complex.h>
#include <math.h>

int main(void)
{
	static const double x[] = {0.1, 0.5, 1, 1.5, 2, 3.7, 10, 100.25};
	for (int i = 0; i < LEN(x); i++) {
		double v = x[i];
		printf("%g: %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", v, sin(v), cos(v), tan(v), exp(v), log(v), pow(v, 1.7), cbrt(v));
		printf("   %.9g %.9g %.9g %.9g %.9g %.9g\n", atan(v), asin(v / 101), sinh(v / 10), tanh(v), log1p(v), expm1(v / 100));
		printf("   %.9g %.9g %.9g %.9g %.9g %.9g\n", tgamma(v / 2), lgamma(v), erf(v), j0(v), exp2(v / 4), log10(v));
		printf("   %.6g %.6g %.6g %.6g\n", sinf(v), expf(v / 10), logf(v), powf(v, 0.3f));
		printf("   %.9Lg %.9Lg %.9Lg\n", sinl(v), expl(v), logl(v));
	}
	printf("%a %a %a %a\n", sqrt(2), fma(0x1.0000001p0, 0x1.0000001p0, -1), hypot(3, 4), fmod(1e300, 7));
	printf("%a %a %a %a\n", floor(-2.5), ceil(-2.5), round(-2.5), nearbyint(-2.5));
	printf("%a %a %a\n", ldexp(0.7, 300), nextafter(1, 0), remainder(10, 3.3));
	printf("%.9g %.9g\n", fmaf(1.1f, 2.2f, 3.3f), atan2(-1, -2));
	double complex z = csqrt(-3 + 4 * I), w = cexp(1 + 2 * I);
	printf("%.9g %.9g %.9g %.9g\n", creal(z), cimag(z), creal(w), cimag(w));
	// To text and back.
	static const char *const text[] = {"0.1", "1e23", "2.2250738585072014e-308", "4.9406564584124654e-324", "1.7976931348623157e308", "1e400", "0x1.8p-1074", "123456789012345678901234567890"};
	for (int i = 0; i < LEN(text); i++) {
		errno = 0;
		double d = strtod(text[i], NULL);
		printf("%s: %a %.17g %s\n", text[i], d, d, errname(errno));
	}
	return 0;
}
