// What each core sees of pages that cores have written apart. See views.go.
#ifndef HEDDLE_VIEWS_H
#define HEDDLE_VIEWS_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

struct heddle_cpu;

// A page that a core has stored to and that other cores see as it was before.
struct heddle_hold {
  uint64_t va;      // of the page, in the space of the core's thread
  uint32_t shared;  // the page that others see
  uint32_t own;     // the core's
  uint32_t next;    // number of the next hold of the shared page, 0: none
  uint16_t core;
  bool full;          // the core may have stored to any byte, and holds the page alone
  uint64_t bytes[64]; // unless full: the bytes that it has stored to
};

// The stores of a core that wait.
struct heddle_view {
  struct heddle_space *space;
  uint32_t thread;   // whose they are
  uint32_t n, room;
  uint32_t *holds;   // their numbers
  uint64_t made;     // clock of the core at the start of the run that made the first
};

// A store that is being executed and is noted when it has happened.
struct heddle_storing {
  uint64_t at;  // instructions of the run before it
  uint32_t n;
  struct { uint32_t hold, from, size; } parts[2];
};

#define HEDDLE_NO_CORE UINT32_MAX

struct heddle_views {
  struct heddle_cpu *cpu;
  struct heddle_ram *ram;
  uint32_t *state;  // of each page: who has touched it
  uint32_t *held;   // number of the first hold of each page, 0: none
  struct heddle_hold *holds;
  uint32_t nholds, room, unused;  // holds in use or not, and the first of those that are not
  uint32_t ncores, running;       // running: the core whose thread runs, or NO_CORE
  struct heddle_view *cores;
  uint32_t live;   // holds in use
  uint32_t pages;  // that are cores' own
  uint64_t last;   // thread that the engine's translations are for
  uint32_t traced; // stores traced in this run
  bool drain;      // the run has done what drains the buffer
  bool strong;     // ... stored to a page that is not held apart
  bool outdated;   // the engine's translations allow too much
  bool acquiring;  // what a locked instruction needs is being done
  bool tracing;    // the engine was stopped to trace a store
  uint64_t pc;     // of the instruction that runs alone
  struct heddle_storing storing;
};

int heddle_views_open(struct heddle_cpu *cpu);
void heddle_views_close(struct heddle_cpu *cpu);
void heddle_views_begin(struct heddle_views *v, uint32_t core, uint32_t thread);
bool heddle_views_end(struct heddle_views *v);
void heddle_views_drain(struct heddle_views *v, uint32_t core);
void heddle_views_reset(struct heddle_views *v, const uint32_t *state, size_t n);
bool heddle_views_hold(struct heddle_views *v, uint32_t core, uint32_t thread, uint64_t made, struct heddle_space *s,
                       const struct heddle_hold *h);
void heddle_views_unref(struct heddle_views *v, uint32_t page);
uint64_t heddle_views_seen(const struct heddle_views *v, uint64_t pte);

// For the engine and the page tables.
enum heddle_walk heddle_views_fill(struct heddle_views *v, uint64_t va, enum heddle_access access, uint64_t *pte);
void heddle_views_step(struct heddle_views *v, uint64_t pc, const ZydisDecodedInstruction *in);
extern const struct heddle_observer heddle_views_observer;

// Where the instruction at pc, which is about to run, stores to: false if that
// cannot be told.
bool heddle_cpu_stores(struct heddle_cpu *cpu, uint64_t pc, uint64_t *at, uint32_t *size);

#endif
