// Questions about one instruction, for engines. See insn.go.
#ifndef HEDDLE_OPERANDS_H
#define HEDDLE_OPERANDS_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A thread's registers, with the layout of arch.Regs.
struct heddle_regs {
  uint64_t gpr[16];  // in the order of instruction encoding: rax rcx rdx rbx rsp rbp rsi rdi r8-r15
  uint64_t rip, rflags, fs_base, gs_base;
};

// An instruction at the PC of a thread that has not executed it yet.
struct heddle_insn {
  ZydisDecodedInstruction in;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  const struct heddle_regs *regs;
};

// Memory that an instruction accesses.
struct heddle_operand {
  uint64_t at;
  uint32_t size;
  uint32_t writes;
};

// The largest number of memory operands that are returned: the elements of a gathering load.
#define HEDDLE_OPERANDS 8

// A load or store of an instruction.
struct heddle_insn_access {
  uint64_t at;
  uint32_t size;    // bytes, at most HEDDLE_ACCESS_BYTES
  uint32_t stores;  // 0 or 1
};

#define HEDDLE_ACCESS_BYTES 16u

// Effects of an instruction on the order of memory accesses.
#define HEDDLE_ORDER_LOCKED 1u  // atomic read and write, and a full fence
#define HEDDLE_ORDER_FULL 2u    // MFENCE, and instructions that serialize
#define HEDDLE_ORDER_STORES 4u  // SFENCE
#define HEDDLE_ORDER_WEAK 8u    // non-temporal stores

bool heddle_insn_decode(const uint8_t *code, size_t len, const struct heddle_regs *regs, struct heddle_insn *out);
bool heddle_insn_first_operand(const struct heddle_insn *i, uint64_t *at);
size_t heddle_insn_operands(const struct heddle_insn *i, struct heddle_operand out[HEDDLE_OPERANDS]);
int heddle_insn_accesses(const struct heddle_insn *i, struct heddle_insn_access *out, int most);
bool heddle_insn_store(const struct heddle_insn *i, uint64_t *at, uint32_t *size);

bool heddle_is_masked(const ZydisDecodedInstruction *in);
const ZydisDecodedOperand *heddle_gathered_operand(const struct heddle_insn *i);
uint64_t heddle_gathered_address(const struct heddle_insn *i, const ZydisDecodedOperand *o, uint64_t index);
bool heddle_is_repeated(const ZydisDecodedInstruction *in);
uint64_t heddle_rep_count(const ZydisDecodedInstruction *in, uint64_t rcx);
bool heddle_is_atomic(const ZydisDecodedInstruction *in);
uint32_t heddle_order_of(const ZydisDecodedInstruction *in);

#endif
