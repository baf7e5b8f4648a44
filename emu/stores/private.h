// Private pages: each core's own copies of pages that it has stored to. See private.go.
#ifndef HEDDLE_PRIVATE_H
#define HEDDLE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "operands.h"

// What an engine offers. Each function has the engine as its first argument.
struct heddle_private_functions {
  uint64_t (*instructions)(void *engine);  // that the run has retired
  // Drops all address translations: at once if now is set, which it is inside the callback that
  // supplies them, otherwise before the next instruction.
  void (*flush)(void *engine, bool now);
  // Reports whether the running instruction is executed alone.
  bool (*is_alone)(void *engine);
  // Finds the memory that the instruction at pc, which is executed alone, stores to. Returns false if
  // its operands do not name it.
  bool (*find_store)(void *engine, uint64_t pc, uint64_t *at, uint32_t *size);
  // The run must continue with the running instruction alone: heddle_private_fill has refused it.
  void (*isolate)(void *engine);
};

// A core's copy of a page. The core has stored to it; the other cores see the page as it was before. With
// views, a core that is a view also has copies of pages that others have changed since: own is twin then.
struct heddle_private_page {
  uint64_t va;      // of the page, in the space of the core's thread
  uint32_t shared;  // number of the page that other cores see
  uint32_t own;     // number of the copy
  uint32_t next;    // index of the next copy of the shared page, 0: none
  uint32_t twin;    // with views: number of the page as it was when the view began
  uint32_t core;
  bool full;          // the core may have stored to any byte, and no other core has a copy
  uint64_t bytes[64]; // unless full: a bit for each byte that the core has stored to
};

// The copies of one core: the stores that wait in its buffer.
struct heddle_core_pages {
  struct heddle_space *space;
  uint32_t thread;   // that made the stores
  uint32_t n, room;
  uint32_t *copies;  // indices
  uint64_t made;     // the core's clock at the start of the run that made the first copy
  bool view;         // memory does not change for the core
};

// A store in execution. Its bytes are marked in the copies once its instruction has retired.
struct heddle_traced_store {
  uint64_t at;  // instructions of the run before it
  uint32_t n;
  struct { uint32_t copy, from, size; } parts[2];
};

#define HEDDLE_NO_CORE UINT32_MAX

struct heddle_private_pages {
  const struct heddle_private_functions *functions;
  void *engine;
  struct heddle_ram *ram;
  struct heddle_space **space;  // of the loaded thread
  const uint64_t *clock;        // of its core, at the start of the run
  uint32_t *state;       // of each page: which threads have accessed it (see private.c)
  uint32_t *first_copy;  // of each page: index of its first copy, 0: none
  // All copies from index 1 on, in use or free, and the first of a list of free ones.
  struct heddle_private_page *copies;
  uint32_t ncopies, room, first_free;
  uint32_t nused;        // copies in use
  uint32_t npages;       // pages of the RAM that are copies
  uint32_t ncores, running_core;  // running_core: whose thread runs, or NO_CORE
  struct heddle_core_pages *cores;
  uint64_t last_thread;  // that the engine's address translations are of
  uint32_t ntraced;      // stores traced in this run
  bool must_drain;             // the run has executed an instruction that drains the buffer
  bool stored_in_place;        // ... or has stored to a page that has no private copies
  bool translations_outdated;  // the engine's allow too much
  bool acquiring;              // the copies that a locked instruction needs are being made
  bool tracing;                // the engine was stopped to trace a store
  bool once;                   // the right to write that was given last is for the running instruction only
  bool filling;                // the engine translates an address for the guest
  uint64_t pc;                 // of the instruction that is executed alone
  struct heddle_traced_store traced_store;
  bool has_views;              // cores are views of threads (heddle_private_use_views)
  bool overflowed;             // there was no room for a copy: a view is not what it should be
  uint64_t faults;             // first stores of views to pages
  uint64_t published;          // pages that views have changed
};

bool heddle_private_init(struct heddle_private_pages *p, const struct heddle_private_functions *functions, void *engine,
                         struct heddle_ram *ram, struct heddle_space **space, const uint64_t *clock, uint32_t cores);
void heddle_private_free(struct heddle_private_pages *p);
void heddle_private_begin(struct heddle_private_pages *p, uint32_t core, uint32_t thread);
bool heddle_private_end(struct heddle_private_pages *p);
void heddle_private_drain(struct heddle_private_pages *p, uint32_t core);
void heddle_private_reset(struct heddle_private_pages *p, const uint32_t *state, size_t n);
bool heddle_private_restore(struct heddle_private_pages *p, uint32_t core, uint32_t thread, uint64_t made,
                            struct heddle_space *s, const struct heddle_private_page *c);
void heddle_private_discard(struct heddle_private_pages *p, uint32_t core);
void heddle_private_use_views(struct heddle_private_pages *p);
void heddle_private_view(struct heddle_private_pages *p, uint32_t core, uint32_t thread, struct heddle_space *s);
void heddle_private_unref(struct heddle_private_pages *p, uint32_t page);
uint64_t heddle_private_seen(const struct heddle_private_pages *p, uint64_t pte);

// For engines.
enum heddle_walk heddle_private_fill(struct heddle_private_pages *p, uint64_t va, enum heddle_access access,
                                     uint64_t *pte);
void heddle_private_alone(struct heddle_private_pages *p, uint64_t pc, uint32_t order, bool stores);

#endif
