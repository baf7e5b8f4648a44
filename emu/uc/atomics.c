#include "atomics.h"

#include "cpu.h"

#include <stdlib.h>

// Starts to log. The descriptions of blocks are dropped, since those with atomic instructions must
// be examined from now on.
int heddle_atomics_open(struct heddle_cpu *cpu) {
  struct heddle_atomic_log *log = &cpu->logs.atomics;
  if (log->on) return 0;
  log->entries = calloc(HEDDLE_ATOMICS, sizeof *log->entries);
  if (!log->entries) return UC_ERR_NOMEM;
  log->on = true;
  heddle_blocks_forget(&cpu->blocks);
  return 0;
}

void heddle_atomics_close(struct heddle_cpu *cpu) { free(cpu->logs.atomics.entries); }

// Decides whether a gated run stops at pc: before an atomic instruction that is not admitted, or
// after one that was.
bool heddle_atomic_check_gate(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_atomic_log *log = &cpu->logs.atomics;
  log->at = false;
  if (!log->gated) return false;
  if (log->n) return true;
  ZydisDecodedInstruction in;
  if (log->muted || log->admitted || !heddle_decode(cpu, pc, &in)) return false;
  log->at = heddle_is_atomic(&in);
  log->compares = in.mnemonic == ZYDIS_MNEMONIC_CMPXCHG;
  log->sets = in.mnemonic == ZYDIS_MNEMONIC_OR;
  if (log->at && !heddle_cpu_operand(cpu, pc, &log->where)) log->where = 0;
  return log->at;
}

// Starts an entry for the instruction at pc, which is about to run, if it is atomic or a fence.
// Afterwards its result may have changed the registers that its operand's address depends on.
bool heddle_atomic_begin(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  struct heddle_atomic_log *log = &cpu->logs.atomics;
  uint8_t flags = 0;
  if (!log->on || log->muted) return false;
  heddle_cost(cpu, in, &flags);
  if (!(flags & HEDDLE_BLOCK_SYNC)) return false;
  struct heddle_atomic *a = &log->entries[log->n];
  a->pc = pc;
  a->instructions = heddle_cpu_instructions_now(cpu);
  a->cycles = heddle_cpu_cycles_now(cpu);
  a->addr = a->size = 0;
  if (heddle_cpu_operand(cpu, pc, &a->addr)) a->size = in->operand_width / 8;
  if (in->mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B) a->size = 8;
  if (in->mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B) a->size = 16;
  return true;
}

// Keeps the entry of heddle_atomic_begin if the instruction has retired.
void heddle_atomic_end(struct heddle_cpu *cpu, bool happened) {
  if (!happened) return;
  cpu->logs.atomics.n++;
  cpu->logs.atomics.admitted = false;
}
