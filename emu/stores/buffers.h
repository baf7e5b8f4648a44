// The store buffer of the running core. See buffers.go.
#ifndef HEDDLE_BUFFERS_H
#define HEDDLE_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "operands.h"

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
  uint64_t address;
  uint64_t physical;
  uint8_t saved[8];  // the bytes that other cores see at its address
  uint32_t size;
  uint16_t weak;
  uint16_t second;   // it is the rest of the previous store, which crosses into another cache line
};

// The stores are ring[head] to ring[tail-1]; room is a power of two. The first napplied since the
// core was loaded are in applied as well.
struct heddle_buffers {
  bool running;  // the stores of a core are in memory
  bool weak;     // a non-temporal store is being executed
  bool bounded;
  uint64_t head, tail, limit, room;
  struct heddle_pending *ring;

  struct heddle_ram *ram;
  struct heddle_space **space;  // of the loaded thread
  const uint64_t *clock;        // of its core, at the start of the run
  uint64_t napplied;
  struct heddle_store *applied, *out;
};

bool heddle_buffers_init(struct heddle_buffers *b, struct heddle_ram *ram, struct heddle_space **space,
                         const uint64_t *clock, uint32_t capacity);
void heddle_buffers_free(struct heddle_buffers *b);
bool heddle_buffers_apply(struct heddle_buffers *b, const struct heddle_store *stores, size_t n);
size_t heddle_buffers_withdraw(struct heddle_buffers *b);

// For engines.
void heddle_buffers_grow(struct heddle_buffers *b);
void heddle_buffers_before(struct heddle_buffers *b, uint32_t order);
void heddle_buffers_after(struct heddle_buffers *b, uint32_t order);
void heddle_buffers_hide(struct heddle_buffers *b, uint64_t from, uint64_t va, const uint8_t *bytes, uint32_t n);
void heddle_buffers_faulted(struct heddle_buffers *b, uint64_t page);

static inline struct heddle_pending *heddle_buffers_at(struct heddle_buffers *b, uint64_t i) {
  return &b->ring[i & (b->room - 1)];
}

static inline bool heddle_buffers_is_full(const struct heddle_buffers *b) { return b->tail - b->head >= b->limit; }

// Adds an entry for one more store. If the buffer is full, its oldest store is committed, by
// forgetting the bytes that it hides.
static inline struct heddle_pending *heddle_buffers_add(struct heddle_buffers *b) {
  if (heddle_buffers_is_full(b)) {
    if (b->bounded) b->head++;
    else heddle_buffers_grow(b);
  }
  return heddle_buffers_at(b, b->tail++);
}

#endif
