// An unmasked invalid x87 operation: SIGFPE with the code FPE_FLTINV.
// engine: no (of the unmasked x87 exceptions it raises only division by zero; docs/engine.md)
#include "conformance.h"

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
	return c == FPE_FLTDIV ? "FLTDIV" : c == FPE_FLTINV ? "FLTINV" : c == FPE_FLTOVF ? "FLTOVF" : c == FPE_FLTUND ? "FLTUND" : "other";
}

static void try(const char *what, uint16_t unmasked, double a, double b)
{
	uint16_t cw = 0x37f & ~unmasked;
	if (sigsetjmp(env, 1) == 0) {
		double out;
		__asm__ volatile("fninit\n fldcw %1\n fldl %3\n fldl %2\n fdivrp\n fwait\n fstpl %0\n fwait\n fninit\n"
				 : "=m"(out)
				 : "m"(cw), "m"(a), "m"(b));
		printf("%s: no signal, %g\n", what, out);
	} else {
		__asm__ volatile("fninit");
		printf("%s: %s\n", what, name(code));
	}
}

int main(void)
{
	on_siginfo(SIGFPE, handler, 0);
	try("invalid", 1, 0, 0);
	try("infinity minus itself", 1, 1.0 / 0, 1.0 / 0);
	return 0;
}
