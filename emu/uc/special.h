// Instructions that the engine executes otherwise than a processor. See special.c.
#ifndef HEDDLE_SPECIAL_H
#define HEDDLE_SPECIAL_H

#include "cpu.h"
#include "sse.h"

// Who executes an instruction that is executed on its own.
enum heddle_special {
  HEDDLE_SPECIAL_NONE,      // the engine
  HEDDLE_SPECIAL_CORRECTED, // the engine, and C corrects the result
  HEDDLE_SPECIAL_EMULATED,  // C
};

// The state before an instruction whose result is corrected.
struct heddle_before {
  uint64_t accumulator, destination;
  uint64_t at;          // of the operand in memory
  uint32_t operand[4];  // the one in a register
  struct heddle_float_flags flags;
  uint64_t rflags;
};

enum heddle_special heddle_special_of(const ZydisDecodedInstruction *in);
bool heddle_is_narrow_exchange(const ZydisDecodedInstruction *in);
bool heddle_narrows_accumulator(struct heddle_cpu *cpu, const uint8_t *code, uint64_t n);
enum heddle_stop heddle_special_emulate(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in);
enum heddle_stop heddle_special_before(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in,
                                       struct heddle_before *b);
void heddle_special_correct(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_before *b);
bool heddle_special_misaligned(struct heddle_cpu *cpu, uint64_t pc);
void heddle_special_note_flags(struct heddle_cpu *cpu);
uint32_t heddle_special_address_vector(struct heddle_cpu *cpu, uint64_t pc, uint64_t va);

#define HEDDLE_NO_VECTOR UINT32_MAX

#endif
