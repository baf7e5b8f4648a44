#include "atomics.h"

#include "cpu.h"

#include <stdlib.h>

// Begins to log. What is known of blocks is forgotten, since from now on those
// with atomic instructions have to be looked at.
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

// Whether a gated run stops at pc: before an atomic instruction that was not
// admitted, or behind one that was.
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

// Puts the instruction at pc, which is about to run, into the log if it is
// atomic or a fence. Its operand's address is known now; afterwards its own
// result may be in the registers.
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

// Keeps what heddle_atomic_begin found, if the instruction happened.
void heddle_atomic_end(struct heddle_cpu *cpu, bool happened) {
  if (!happened) return;
  cpu->logs.atomics.n++;
  cpu->logs.atomics.admitted = false;
}
