// Unmasked SSE exceptions: SIGFPE with the code of the kind at the instruction itself, which has had no effect.
// link: -lm
// engine: no (it raises no SSE exceptions; docs/engine.md)
#include "conformance.h"

#include <fenv.h>
#include <setjmp.h>

static sigjmp_buf env;
static volatile int code;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	code = si->si_code;
	siglongjmp(env, sig);
}

static const char *name(int c)
{
	return c == FPE_FLTDIV ? "FLTDIV" : c == FPE_FLTINV ? "FLTINV" : c == FPE_FLTOVF ? "FLTOVF" : c == FPE_FLTUND ? "FLTUND" : c == FPE_FLTRES ? "FLTRES" : "other";
}

static void try(const char *what, int excepts, double a, double b)
{
	if (sigsetjmp(env, 1) == 0) {
		feclearexcept(FE_ALL_EXCEPT);
		feenableexcept(excepts);
		__asm__ volatile("divsd %1, %0" : "+x"(a) : "x"(b));
		fedisableexcept(FE_ALL_EXCEPT);
		printf("%s: no signal, %g\n", what, a);
	} else {
		fedisableexcept(FE_ALL_EXCEPT);
		printf("%s: %s\n", what, name(code));
	}
}

int main(void)
{
	on_siginfo(SIGFPE, handler, 0);
	try("masked", 0, 1, 0);
	try("zero divide", FE_DIVBYZERO, 1, 0);
	try("invalid", FE_INVALID, 0, 0);
	try("overflow", FE_OVERFLOW, 1e300, 1e-300);
	try("underflow", FE_UNDERFLOW, 1e-300, 1e300);
	try("inexact", FE_INEXACT, 1, 3);
	try("exact", FE_ALL_EXCEPT, 1, 4);
	return 0;
}
