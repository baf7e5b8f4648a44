// A log of every instruction, for tests. See insnlog.go.
#ifndef HEDDLE_INSNLOG_H
#define HEDDLE_INSNLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heddle_cpu;

struct heddle_insn_log {
  bool on;
  uint64_t *pcs;
  size_t n, room;
};

int heddle_insns_start(struct heddle_cpu *cpu);
void heddle_insns_close(struct heddle_insn_log *log);
void heddle_insns_retract(struct heddle_cpu *cpu, uint64_t pc);
void heddle_insns_add(struct heddle_cpu *cpu, uint64_t pc);
void heddle_insns_empty(struct heddle_cpu *cpu);

#endif
