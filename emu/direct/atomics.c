// The log of atomic instructions and fences, which are units.
#include "general.h"

#include "engine.h"

static bool is_atomic(const struct direct_insn *in) { return in->what & INSN_ATOMIC; }

static bool has_operand(const struct direct_insn *in) { return (in->what & INSN_MEMORY) && is_atomic(in); }

// Reports whether a gated run stops before the instruction: an atomic one that is not admitted, or
// one after a logged one.
bool direct_atomic_stops(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_atomic_log *log = &e->log.atomics;
  log->at = false;
  if (!log->gated) return false;
  if (log->n) return true;
  if (log->muted || log->admitted || !is_atomic(in)) return false;
  log->at = true;
  log->compares = in->mnemonic == ZYDIS_MNEMONIC_CMPXCHG;
  log->sets = in->mnemonic == ZYDIS_MNEMONIC_OR;
  log->where = has_operand(in) ? direct_address_of(e, in) : 0;
  return true;
}

// Starts an entry for the instruction, which is about to be executed, if it is atomic or a fence.
bool direct_atomic_begin(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_atomic_log *log = &e->log.atomics;
  if (log->muted || !(in->what & (INSN_ATOMIC | INSN_FENCE))) return false;
  bool operand = has_operand(in);
  log->entries[log->n] = (struct direct_atomic){
      .pc = in->pc,
      .addr = operand ? direct_address_of(e, in) : 0,
      .instructions = direct_instructions_now(e),
      .cycles = direct_cycles_now(e),
      .size = operand ? in->size : 0,
  };
  return true;
}

// Keeps the entry: the instruction has retired.
void direct_atomic_end(struct direct_engine *e) {
  e->log.atomics.n++;
  e->log.atomics.admitted = false;
}
