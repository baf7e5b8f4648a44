// The stores of the running core, which the engine reports before it makes them, for buffers.
#ifndef HEDDLE_STORE_HOOK_H
#define HEDDLE_STORE_HOOK_H

#include "cpu.h"

// The buffers, and the addresses of what the engine reports.
struct heddle_store_hook {
  struct heddle_buffers buffers;
  struct heddle_cpu *cpu;
  uint64_t *va;      // of each page: the address at which the engine may write it
  uint64_t *filled;  // ... and the epoch in which that was so
  uint64_t epoch;
  uc_hook hook;
};

int heddle_store_hook_open(struct heddle_cpu *cpu, uint32_t capacity);
void heddle_store_hook_close(struct heddle_cpu *cpu);
void heddle_store_hook_flushed(struct heddle_cpu *cpu);
void heddle_store_hook_filled(struct heddle_cpu *cpu, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms);

#endif
