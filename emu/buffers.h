// The store buffer of the core that runs. See buffers.go.
#ifndef HEDDLE_BUFFERS_H
#define HEDDLE_BUFFERS_H

#include "accesses.h"

// A store that waits, or a fence (size 0) that stores behind it wait for.
struct heddle_store {
  uint64_t addr;   // virtual
  uint8_t data[8];
  uint64_t cycles;  // of the core's clock at the start of the run that made it
  uint32_t size;    // 0 to 8
  uint32_t weak;    // non-temporal
};

// The same while its core runs.
struct heddle_pending {
  struct heddle_store store;
  uint8_t saved[8];     // what other cores see in its place
  uint64_t physical[2];  // of the first byte; of the first byte on a second page, if there is one
  uint32_t first;       // bytes on the first page
  uint32_t unused;
};

struct heddle_buffers {
  struct heddle_cpu *cpu;
  bool running;       // a core's buffer is laid over memory
  bool fences;        // SFENCE matters
  bool weak;          // a non-temporal store is being executed
  uint32_t capacity;  // 0: unbounded
  // A ring of the stores from head up to tail; room is a power of two.
  struct heddle_pending *ring;
  uint64_t head, tail, room;
  uint64_t overflowed;  // stores that were committed since there was no room
  uint64_t stores;      // made in all
  struct heddle_store *out;
  uint64_t *va;      // of each page: the address at which the engine may write it
  uint64_t *filled;  // ... and the epoch in which that was so
  uint64_t epoch;
  uc_hook hook;
};

int heddle_buffers_open(struct heddle_cpu *cpu, uint32_t capacity, bool fences);
void heddle_buffers_close(struct heddle_cpu *cpu);
bool heddle_buffers_lay(struct heddle_cpu *cpu, const struct heddle_store *stores, size_t n);
size_t heddle_buffers_park(struct heddle_cpu *cpu);

void heddle_buffers_before(struct heddle_buffers *b, uint32_t order);
void heddle_buffers_after(struct heddle_buffers *b, uint32_t order);
void heddle_buffers_faulted(struct heddle_buffers *b, uint64_t page);
void heddle_buffers_flushed(struct heddle_buffers *b);
void heddle_buffers_filled(struct heddle_buffers *b, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms);

#endif
