// The store buffer of the core that runs. See buffers.go.
#ifndef HEDDLE_BUFFERS_H
#define HEDDLE_BUFFERS_H

#include "accesses.h"

// A store that waits, or a fence (size 0) that stores behind it wait for.
struct heddle_store {
  uint64_t addr;   // virtual
  uint8_t data[8];
  uint64_t cycles;  // of the core's clock at the start of the run that made it
  uint32_t size;    // 0 to 8, in one cache line
  uint32_t weak;    // non-temporal
};

// The same while its core runs: half a cache line.
struct heddle_pending {
  uint64_t physical;
  uint8_t saved[8];  // what other cores see in its place
  uint32_t size;
  uint16_t weak;
  uint16_t second;   // the rest of the store before it, which crosses into another cache line
};

struct heddle_buffers {
  // What the hook touches. The stores are ring[head] up to ring[tail], room is a
  // power of two; the first laid of all that ever were in it since the core was
  // put on are as in given.
  bool running;  // a core's buffer is laid over memory
  bool weak;     // a non-temporal store is being executed
  bool bounded;
  uint64_t head, tail, limit, room;
  struct heddle_pending *ring;

  struct heddle_cpu *cpu;
  uint64_t laid;
  struct heddle_store *given, *out;
  uint64_t *va;      // of each page: the address at which the engine may write it
  uint64_t *filled;  // ... and the epoch in which that was so
  uint64_t epoch;
  uc_hook hook;
};

int heddle_buffers_open(struct heddle_cpu *cpu, uint32_t capacity);
void heddle_buffers_close(struct heddle_cpu *cpu);
bool heddle_buffers_apply(struct heddle_cpu *cpu, const struct heddle_store *stores, size_t n);
size_t heddle_buffers_withdraw(struct heddle_cpu *cpu);

void heddle_buffers_before(struct heddle_buffers *b, uint32_t order);
void heddle_buffers_after(struct heddle_buffers *b, uint32_t order);
void heddle_buffers_hide(struct heddle_buffers *b, uint64_t from, uint64_t va, const uint8_t *bytes, uint32_t n);
void heddle_buffers_faulted(struct heddle_buffers *b, uint64_t page);
void heddle_buffers_flushed(struct heddle_buffers *b);
void heddle_buffers_filled(struct heddle_buffers *b, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms);

#endif
