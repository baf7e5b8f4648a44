// The store buffer of the running core. See buffers.go.
#ifndef HEDDLE_BUFFERS_H
#define HEDDLE_BUFFERS_H

#include "accesses.h"

// A store that waits, or a fence (size 0) that the stores after it wait for.
struct heddle_store {
  uint64_t addr;   // virtual
  uint8_t data[8];
  uint64_t cycles;  // of the core's clock at the start of the run that made the store
  uint32_t size;    // 0 to 8, in one cache line
  uint32_t weak;    // non-temporal
};

// A store that waits, while its core runs. It lies within one cache line.
struct heddle_pending {
  uint64_t physical;
  uint8_t saved[8];  // the bytes that other cores see at its address
  uint32_t size;
  uint16_t weak;
  uint16_t second;   // it is the rest of the previous store, which crosses into another cache line
};

struct heddle_buffers {
  // The data of the hook. The stores are ring[head] to ring[tail-1]; room is a power of two. The
  // first napplied since the core was loaded are in applied as well.
  bool running;  // the stores of a core are in memory
  bool weak;     // a non-temporal store is being executed
  bool bounded;
  uint64_t head, tail, limit, room;
  struct heddle_pending *ring;

  struct heddle_cpu *cpu;
  uint64_t napplied;
  struct heddle_store *applied, *out;
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
