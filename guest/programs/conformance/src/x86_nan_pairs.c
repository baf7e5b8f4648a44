// Of two NaNs an SSE operation returns the first operand's, made quiet, whatever their signs and payloads.
// engine: no (of two NaNs it takes the one with the larger significand; docs/engine.md)
#include "conformance.h"

static double from_bits(uint64_t u)
{
	double d;
	memcpy(&d, &u, 8);
	return d;
}

#define TRY(insn)                                                                            \
	do {                                                                                 \
		for (int i = 0; i < LEN(nan); i++)                                           \
			for (int j = 0; j < LEN(nan); j++) {                                 \
				double a = from_bits(nan[i]), b = from_bits(nan[j]);         \
				uint64_t u;                                                  \
				__asm__ volatile(insn " %1, %0" : "+x"(a) : "x"(b));         \
				memcpy(&u, &a, 8);                                           \
				printf("%s %d %d: %016lx\n", insn, i, j, u);                 \
			}                                                                    \
	} while (0)

int main(void)
{
	static const uint64_t nan[] = {0x7ff8000000001234, 0xfff8000000004321, 0x7ff0000000005678, 0xfff4000000000001};
	TRY("addsd");
	TRY("mulsd");
	TRY("divsd");
	return 0;
}
