// Unmasked x87 exceptions: SIGFPE with the code of the kind, at the next waiting x87 instruction.
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
	try("masked", 0, 0, 1);
	try("zero divide", 4, 0, 1);
	try("zero divide with only invalid unmasked", 1, 0, 1);
	try("exact", 0x3f, 2, 8);
	return 0;
}
