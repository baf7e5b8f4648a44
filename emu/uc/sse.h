// Corrections of the engine's floating point: the exception flags of MXCSR and the x87 status word, which it
// does not show, and lengths of strings. See sse.c.
#ifndef HEDDLE_SSE_H
#define HEDDLE_SSE_H

#include "cpu.h"

// Exception flags: IE DE ZE OE UE PE from bit 0 on.
struct heddle_float_flags {
  uint8_t sse, x87;
};

// The state before an instruction that shows flags.
struct heddle_shown {
  struct heddle_float_flags flags;
  uint64_t at;  // of the operand in memory
  bool has_address;
};

int heddle_sse_init(struct heddle_cpu *cpu);
struct heddle_float_flags heddle_float_flags(struct heddle_cpu *cpu);
void heddle_float_set_flags(struct heddle_cpu *cpu, struct heddle_float_flags flags);
bool heddle_sse_special(const ZydisDecodedInstruction *in);
bool heddle_sse_replace_lengths(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, uint64_t lengths[2]);
void heddle_sse_restore_lengths(struct heddle_cpu *cpu, const uint64_t lengths[2]);
bool heddle_sse_before(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in, struct heddle_shown *shown);
void heddle_sse_after(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_shown *shown);

#endif
