// Corrections of the engine's SSE: the exception flags of MXCSR, which it does not show, and
// lengths of strings. See sse.c.
#ifndef HEDDLE_SSE_H
#define HEDDLE_SSE_H

#include "cpu.h"

int heddle_sse_init(struct heddle_cpu *cpu);
uint32_t heddle_sse_flags(struct heddle_cpu *cpu);
void heddle_sse_set_flags(struct heddle_cpu *cpu, uint32_t mxcsr);
bool heddle_sse_special(const ZydisDecodedInstruction *in);
bool heddle_sse_replace_lengths(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, uint64_t lengths[2]);
void heddle_sse_restore_lengths(struct heddle_cpu *cpu, const uint64_t lengths[2]);
void heddle_sse_after(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in);

#endif
