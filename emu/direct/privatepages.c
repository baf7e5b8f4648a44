// What private pages need of the engine.
#include "engine.h"

#include <stdlib.h>

static uint64_t instructions(void *engine) { return direct_instructions_now(engine); }

static void flush(void *engine, bool now) {
  struct direct_engine *e = engine;
  if (now) direct_bank_flush(e->bank);
  else e->tables_outdated = true;
}

static bool is_alone(void *engine) { return ((struct direct_engine *)engine)->alone; }

static bool find_store(void *engine, uint64_t pc, uint64_t *at, uint32_t *size) {
  (void)pc;
  return direct_find_store(engine, ((struct direct_engine *)engine)->running, at, size);
}

// A block is left before an access that was refused, and its instruction is executed alone.
static void isolate(void *engine) { (void)engine; }

static const struct heddle_private_functions functions = {
    .instructions = instructions, .flush = flush, .is_alone = is_alone, .find_store = find_store, .isolate = isolate};

// Starts to give cores private pages. Nothing may have run yet.
bool direct_private_open(struct direct_engine *e) {
  if (e->has_run || e->private_pages || e->buffers || e->ram->observer) return false;
  e->private_pages = calloc(1, sizeof *e->private_pages);
  return e->private_pages &&
      heddle_private_init(e->private_pages, &functions, e, e->ram, &e->space, &e->clock, e->cores);
}

void direct_private_close(struct direct_engine *e) {
  if (!e->private_pages) return;
  heddle_private_free(e->private_pages);
  free(e->private_pages);
}

// Changes the entry of a page that was found for an access to that of the page which the running
// core sees.
enum heddle_walk direct_private_fill(struct direct_engine *e, uint64_t va, enum heddle_access access, uint64_t *pte) {
  enum heddle_walk why = heddle_private_fill(e->private_pages, va, access, pte);
  e->private_pages->tracing = false;
  return why;
}
