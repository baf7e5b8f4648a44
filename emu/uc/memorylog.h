// The engine's part of the memory log. See memorylog.go.
#ifndef HEDDLE_MEMORYLOG_H
#define HEDDLE_MEMORYLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unicorn/unicorn.h>

#include "memlog.h"

struct heddle_cpu;
struct heddle_inside;
struct heddle_ram;

// Facts about the instruction at an address.
struct heddle_mem_site {
  uint64_t pc;
  uint64_t facts; // the space's code number << 2 | ATOMIC | WIDE
};

#define HEDDLE_MEM_SITES (1u << 14)

struct heddle_mem_log {
  // The data of the hooks.
  uint64_t pc;         // of the running instruction
  size_t start;        // index of its first entry
  struct heddle_mem_buffer *to;
  uint64_t *va;        // of each page: its virtual address in the engine's translations
  bool on, muted, selective;
  bool partial;        // some accesses are left out, so contents and writes of the kernel are, too
  bool hooks_lost;     // the engine reports no accesses until it is restarted
  // The last page that the engine asked for, the start of the entries of the instruction that
  // needed it, and the page's previous virtual address.
  uint64_t last_page, last_was;
  size_t last_start;
  bool flush;          // the engine's address translations must be dropped before the next run
  struct heddle_mem_site *sites;

  struct heddle_cpu *cpu;
  uint64_t *filled;    // of each page: the epoch in which va was set
  uint64_t epoch;      // incremented at each flush of the engine's translations
  uint32_t *known;     // of each page: the generation in which its content was logged
  uint32_t generation;
  struct heddle_mem_range *data, *code;
  size_t ndata, ncode;
  uc_hook hooks[3];
};

int heddle_mem_open(struct heddle_cpu *cpu, const struct heddle_mem_range *data, size_t ndata,
                    const struct heddle_mem_range *code, size_t ncode, bool partial);
void heddle_mem_close(struct heddle_cpu *cpu);

void heddle_mem_swap(struct heddle_cpu *cpu, struct heddle_mem_buffer *b);
void heddle_mem_forget(struct heddle_cpu *cpu);
void heddle_mem_add_store(struct heddle_mem_log *log, uint64_t va, size_t n);
void heddle_mem_undo(struct heddle_mem_log *log);
void heddle_mem_pages(struct heddle_cpu *cpu, const struct heddle_inside *in);
void heddle_mem_pieces(struct heddle_cpu *cpu, const struct heddle_inside *in, uint32_t from, uint32_t upto);
void heddle_mem_translated(struct heddle_mem_log *log, uint64_t pc, uint32_t size);
void heddle_mem_retry(struct heddle_mem_log *log);
void heddle_mem_hooks_regained(struct heddle_mem_log *log);
void heddle_mem_filled(struct heddle_mem_log *log, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms);
void heddle_mem_buffered(struct heddle_ram *ram, uint64_t physical, uint64_t va, const void *bytes, size_t n);

#endif
