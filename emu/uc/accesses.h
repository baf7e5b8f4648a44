// A log of memory accesses, and the effects of instructions on the order of others. See
// accesses.go.
#ifndef HEDDLE_ACCESSES_H
#define HEDDLE_ACCESSES_H

#include "cpu.h"

uint32_t heddle_order_at(struct heddle_cpu *cpu, uint64_t pc);

struct heddle_access_entry {
  uint64_t physical;
  uint32_t size;
  uint32_t write;
};

#define HEDDLE_ACCESSES 512

struct heddle_access_log {
  struct heddle_cpu *cpu;
  uc_hook hooks[2];
  uint64_t count;  // may exceed HEDDLE_ACCESSES: later ones are not kept
  struct heddle_access_entry entries[HEDDLE_ACCESSES];
};

int heddle_access_log_open(struct heddle_access_log *log, struct heddle_cpu *cpu);
void heddle_access_log_close(struct heddle_access_log *log);

#endif
