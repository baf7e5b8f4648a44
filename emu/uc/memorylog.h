// The engine's part of the memory log. See memorylog.go.
#ifndef HEDDLE_MEMORYLOG_H
#define HEDDLE_MEMORYLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unicorn/unicorn.h>

#include "core.h"

struct heddle_cpu;
struct heddle_ram;

// Facts about the instruction at an address.
struct heddle_mem_site {
  uint64_t pc;
  uint64_t facts; // the space's code number << 2 | ATOMIC | WIDE
};

#define HEDDLE_MEM_SITES (1u << 14)

struct heddle_mem_log {
  // The data of the hooks.
  struct heddle_mem_core core;
  uint64_t pc;         // of the running instruction
  uint64_t *va;        // of each page: its virtual address in the engine's translations
  bool ended;
  bool hooks_lost;     // the engine reports no accesses until it is restarted
  // The last page that the engine asked for, the start of the entries of the instruction that
  // needed it, and the page's previous virtual address.
  uint64_t last_page, last_was;
  size_t last_start;
  struct heddle_mem_site *sites;

  struct heddle_cpu *cpu;
  uint64_t *filled;    // of each page: the epoch in which va was set
  uint64_t epoch;      // incremented at each flush of the engine's translations
  uc_hook hooks[3];
};

int heddle_mem_open(struct heddle_cpu *cpu, const struct heddle_mem_range *data, size_t ndata,
                    const struct heddle_mem_range *code, size_t ncode, bool partial);
void heddle_mem_close(struct heddle_cpu *cpu);
void heddle_cpu_end_logs(struct heddle_cpu *cpu);
void heddle_mem_drop_ended(struct heddle_mem_log *log);

void heddle_mem_add_store(struct heddle_mem_log *log, uint64_t va, size_t n);
void heddle_mem_translated(struct heddle_mem_log *log, uint64_t pc, uint32_t size);
void heddle_mem_retry(struct heddle_mem_log *log);
void heddle_mem_hooks_regained(struct heddle_mem_log *log);
void heddle_mem_filled(struct heddle_mem_log *log, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms);

#endif
