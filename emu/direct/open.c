// Setting an engine up, its threads and its breakpoints.
#include "block.h"

#include <stdlib.h>
#include <string.h>

int direct_open(struct direct_engine **out, struct heddle_ram *ram, uint32_t cores, enum direct_level level,
                const struct direct_costs *costs) {
  struct direct_engine *e = calloc(1, sizeof *e);
  *out = e;
  if (!e) return -1;
  e->ram = ram;
  e->cores = cores;
  e->level = level;
  e->costs = *costs;
  e->tsc_multiplier = 1024;
  e->heat = HEAT_START;
  direct_inside_init(e);
  if (direct_signals_init()) return -1;
  if (direct_memory_init(&e->code, CODE_BYTES, BLOCKS * sizeof(uint16_t))) return -1;
  return direct_banks_init(e) && direct_units_init(e) && direct_blocks_init(e) ? 0 : -1;
}

// Starts to buffer stores. Nothing may have run yet: it is part of the translated code.
bool direct_buffers_open(struct direct_engine *e, uint32_t capacity) {
  if (e->has_run || e->buffers) return false;
  e->buffers = calloc(1, sizeof *e->buffers);
  e->stores.all = calloc(LOGGED_STORES, sizeof *e->stores.all);
  e->stores.va = heddle_reserve(e->ram->pages * sizeof *e->stores.va);
  return e->buffers && e->stores.all && e->stores.va &&
      heddle_buffers_init(e->buffers, e->ram, &e->space, &e->clock, capacity);
}

static void close_buffers(struct direct_engine *e) {
  if (!e->buffers) return;
  heddle_buffers_free(e->buffers);
  heddle_unreserve(e->stores.va, e->ram->pages * sizeof *e->stores.va);
  free(e->stores.all);
  free(e->buffers);
}

void direct_close(struct direct_engine *e) {
  if (!e) return;
  direct_log_close(e);
  direct_blocks_close(e);
  direct_units_close(e);
  direct_banks_close(e);
  direct_memory_close(&e->code);
  close_buffers(e);
  direct_private_close(e);
  free(e->breakpoints);
  free(e);
}

// A thread with the registers of another, or with those of a new one.
struct direct_thread *direct_new_thread(const struct direct_thread *from) {
  struct direct_thread *t = aligned_alloc(64, sizeof *t);
  if (!t) abort();
  if (from) {
    *t = *from;
    return t;
  }
  memset(t, 0, sizeof *t);
  t->rflags = FLAG_IF | 2;
  t->segments[1] = 0x33;
  t->segments[2] = 0x2b;
  direct_float_init(t);
  return t;
}

int direct_set_breakpoints(struct direct_engine *e, const uint64_t *sorted, size_t n) {
  uint64_t *copy = malloc((n ? n : 1) * sizeof *copy);
  if (!copy) return -1;
  memcpy(copy, sorted, n * sizeof *copy);
  // Blocks end before breakpoints: those that the change concerns are made anew.
  for (size_t i = 0; i < n; i++)
    if (!direct_has_breakpoint(e, sorted[i])) direct_blocks_drop_address(e, sorted[i], false);
  uint64_t *old = e->breakpoints;
  size_t nold = e->nbreakpoints;
  e->breakpoints = copy;
  e->nbreakpoints = n;
  for (size_t i = 0; i < nold; i++)
    if (!direct_has_breakpoint(e, old[i])) direct_blocks_drop_address(e, old[i], true);
  free(old);
  return 0;
}

// Empties the bank's lists of units and blocks if they are outdated: some have gone, or other code
// may be at their addresses.
void direct_check_units(struct direct_engine *e) {
  struct direct_bank *b = e->bank;
  uint64_t code = direct_code_number(e);
  if (b->epoch == e->units.epoch && b->code == code) return;
  if (b->epoch) {  // otherwise the lists are new
    memset(b->units, 0, UNIT_CACHE * sizeof *b->units);
    memset(b->blocks, 0, UNIT_CACHE * sizeof *b->blocks);
    memset(b->last_blocks, 0, UNIT_CACHE * sizeof *b->last_blocks);
  }
  if (b->code != code) direct_blocks_forget(b);
  b->epoch = e->units.epoch;
  b->code = code;
}

// Where the host continues after a fault at pc in translated code.
const void *direct_fault_target(struct direct_engine *e, uint64_t pc) {
  bool in_unit = pc - (uint64_t)(uintptr_t)e->code.executable < UNIT_CODE_BYTES;
  return in_unit ? (const void *)(uintptr_t)direct_leave_fault : (const void *)(uintptr_t)direct_trap;
}
