// A log of the atomic instructions and fences that a run executes. See atomics.go.
#ifndef HEDDLE_ATOMICS_H
#define HEDDLE_ATOMICS_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heddle_cpu;

struct heddle_atomic {
  uint64_t pc, addr;
  uint64_t instructions, cycles;  // of the run before it
  uint32_t size;                  // of the access in bytes, 0: a fence
  uint32_t unused;
};

// Entries, and those left free when a run stops for a full log: it stops only at the start of a
// block, and no block has more instructions.
#define HEDDLE_ATOMICS 4096u
#define HEDDLE_ATOMICS_SLACK 512u

struct heddle_atomic_log {
  bool on, muted;
  bool gated;     // runs also stop before and after each atomic instruction
  bool admitted;  // the next one needs no stop before it
  bool at;        // the run has stopped before one
  uint64_t where; // address of its operand
  bool compares;  // it is a CMPXCHG
  bool sets;      // it is an OR
  size_t n, taken;
  struct heddle_atomic *entries;
};

static inline bool heddle_atomics_full(const struct heddle_atomic_log *log) {
  return log->n + HEDDLE_ATOMICS_SLACK > HEDDLE_ATOMICS || (log->gated && log->n);
}

int heddle_atomics_open(struct heddle_cpu *cpu);
void heddle_atomics_close(struct heddle_cpu *cpu);
bool heddle_atomic_check_gate(struct heddle_cpu *cpu, uint64_t pc);
bool heddle_atomic_begin(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in);
void heddle_atomic_end(struct heddle_cpu *cpu, bool happened);

#endif
