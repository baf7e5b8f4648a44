// The part of a memory log that engines share: buffers, what is selected, and all entries but
// those of loads and stores.
#ifndef HEDDLE_MEMLOG_CORE_H
#define HEDDLE_MEMLOG_CORE_H

#include <stdbool.h>

#include "memlog.h"
#include "memory.h"

struct heddle_mem_core {
  struct heddle_mem_buffer *to;
  struct heddle_mem_consumer *consumer;  // of the present run, or NULL
  uint64_t era;        // see struct heddle_mem_consumer; heddle_mem_new_era
  size_t start;        // index of the first entry of the running instruction
  bool on, muted, selective;
  bool partial;        // some accesses are left out, so contents and writes of the kernel are, too
  bool full;           // the run must stop
  bool flush;          // the engine's address translations must be dropped before the next run
  struct heddle_ram *ram;
  uint32_t *known;     // of each page: the generation in which its content was logged
  uint32_t generation;
  struct heddle_mem_range *data, *code;
  size_t ndata, ncode;
  // Reports whether it is the engine that accesses memory by the functions of spaces, rather than the
  // kernel; bytes is NULL for a read.
  bool (*is_own)(void *engine, uint64_t va, const void *bytes, size_t n);
  void *engine;
  bool late;           // the log began within a run: pages that are not known are not new
};

bool heddle_mem_core_open(struct heddle_mem_core *log, struct heddle_ram *ram, const struct heddle_mem_range *data,
                          size_t ndata, const struct heddle_mem_range *code, size_t ncode, bool partial);
void heddle_mem_core_close(struct heddle_mem_core *log);
void heddle_mem_swap(struct heddle_mem_core *log, struct heddle_mem_buffer *b);
void heddle_mem_forget(struct heddle_mem_core *log);
void heddle_mem_undo(struct heddle_mem_core *log);
void heddle_mem_note_full(struct heddle_mem_core *log);
struct heddle_mem_entry *heddle_mem_add(struct heddle_mem_core *log, uint8_t kind);
void heddle_mem_content(struct heddle_mem_core *log, uint64_t page, uint64_t va);
size_t heddle_mem_consume(struct heddle_mem_core *log, const struct heddle_mem_access *accesses, size_t n, const uint64_t *record,
                          uint32_t branches);
uint64_t heddle_mem_new_era(void);
void heddle_mem_map(struct heddle_mem_core *log, uint64_t page, uint64_t va);

static inline bool heddle_mem_is_access(const struct heddle_mem_entry *e) { return e->kind <= HEDDLE_MEM_HIGH; }

static inline bool heddle_mem_overlaps(const struct heddle_mem_range *ranges, size_t n, uint64_t from, uint64_t to) {
  for (size_t i = 0; i < n; i++)
    if (from < ranges[i].end && to > ranges[i].start) return true;
  return n == 0;
}

// Reports whether an access of n bytes at va by the instruction at pc is selected.
static inline bool heddle_mem_selects(const struct heddle_mem_core *log, uint64_t va, uint64_t n, uint64_t pc) {
  return !log->selective || (heddle_mem_overlaps(log->data, log->ndata, va, va + n) &&
                             heddle_mem_overlaps(log->code, log->ncode, pc, pc + 1));
}

#endif
