#include "buffers.h"

#include <stdlib.h>

#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

// Doubles the ring.
void heddle_buffers_grow(struct heddle_buffers *b) {
  struct heddle_pending *ring = malloc(2 * b->room * sizeof *ring);
  struct heddle_store *out = realloc(b->out, 2 * b->room * sizeof *out);
  struct heddle_store *applied = realloc(b->applied, 2 * b->room * sizeof *applied);
  if (!ring || !out || !applied) abort();
  for (uint64_t i = b->head; i < b->tail; i++) ring[i & (2 * b->room - 1)] = *heddle_buffers_at(b, i);
  free(b->ring);
  b->ring = ring;
  b->out = out;
  b->applied = applied;
  b->room *= 2;
  if (!b->bounded) b->limit = b->room;
}

// ---- memory at the address of a store ---------------------------------------

// Saves the bytes at the store's address in hidden, and writes shown there.
static void exchange_bytes(struct heddle_buffers *b, struct heddle_pending *p, uint8_t *hidden, const uint8_t *shown) {
  struct heddle_ram *ram = b->ram;
  uint8_t *memory = ram->base + p->physical;
  memcpy(hidden, memory, p->size);
  memcpy(memory, shown, p->size);
  heddle_ram_written(ram, p->physical >> HEDDLE_PAGE_SHIFT);
  if (!ram->observer) return;
  ram->commits = true;
  ram->observer->written(ram->observed_by, p->physical >> HEDDLE_PAGE_SHIFT, p->address, shown, p->size);
  ram->commits = false;
}

// ---- effects of instructions on the buffer ----------------------------------

static void drain_all(struct heddle_buffers *b) { b->head = b->tail; }

static void add_fence(struct heddle_buffers *b) {
  if (b->head == b->tail || !heddle_buffers_at(b, b->tail - 1)->size) return;
  struct heddle_pending *p = heddle_buffers_add(b);
  memset(p, 0, sizeof *p);
}

// An instruction that orders memory accesses is about to run.
void heddle_buffers_before(struct heddle_buffers *b, uint32_t order) {
  if (!b->running) return;
  if (order & (HEDDLE_ORDER_LOCKED | HEDDLE_ORDER_FULL)) drain_all(b);
  if (order & HEDDLE_ORDER_STORES) add_fence(b);
  b->weak = order & HEDDLE_ORDER_WEAK;
}

void heddle_buffers_after(struct heddle_buffers *b, uint32_t order) {
  if (!b->running) return;
  if (order & HEDDLE_ORDER_LOCKED) drain_all(b);
  b->weak = false;
}

// Changes the bytes at va that the stores from number from on hide.
void heddle_buffers_hide(struct heddle_buffers *b, uint64_t from, uint64_t va, const uint8_t *bytes, uint32_t n) {
  for (uint64_t i = from < b->head ? b->head : from; i < b->tail; i++) {
    struct heddle_pending *p = heddle_buffers_at(b, i);
    for (uint32_t k = 0; k < p->size; k++)
      if (p->address + k - va < n) p->saved[k] = bytes[p->address + k - va];
  }
}

// An access to the page has faulted. If a store crosses pages, its hook was called before that was
// known.
void heddle_buffers_faulted(struct heddle_buffers *b, uint64_t page) {
  if (!b->running || b->head == b->tail || !heddle_buffers_at(b, b->tail - 1)->second) return;
  const struct heddle_pending *p = heddle_buffers_at(b, b->tail - 2);  // still in the ring, even if it was committed
  uint64_t next = p->address + p->size;
  if (OFFSET(next) || ((p->address ^ page) >= HEDDLE_PAGE_SIZE && (next ^ page) >= HEDDLE_PAGE_SIZE)) return;
  b->tail -= 2;
  if (b->head > b->tail) b->head = b->tail;
}

// ---- switching cores --------------------------------------------------------

// Finds the memory at a store's address, for writing. Returns false if no page is there.
static bool locate_store(struct heddle_buffers *b, struct heddle_pending *p, uint64_t address) {
  uint64_t pte;
  if (heddle_space_walk(*b->space, address, HEDDLE_WRITE, true, &pte)) return false;
  p->address = address;
  p->physical = (pte & ~(HEDDLE_PAGE_SIZE - 1)) + OFFSET(address);
  return true;
}

// Writes the stores of a core, oldest first, over memory, which has the values that all cores see,
// and starts to buffer. A store whose page no longer exists is left out; then the result is false.
bool heddle_buffers_apply(struct heddle_buffers *b, const struct heddle_store *stores, size_t n) {
  b->head = b->tail = 0;
  while (b->room < n) heddle_buffers_grow(b);
  for (size_t i = 0; i < n; i++) {
    const struct heddle_store *s = &stores[i];
    struct heddle_pending *p = heddle_buffers_at(b, b->tail);
    *p = (struct heddle_pending){.size = s->size, .weak = s->weak};
    if (s->size && !locate_store(b, p, s->addr)) continue;
    if (s->size) exchange_bytes(b, p, p->saved, s->data);
    b->applied[b->tail++] = *s;
  }
  b->napplied = b->tail;
  b->running = true;
  return b->tail == n;
}

// Describes a store for the time in which its core does not run, without its bytes.
static struct heddle_store describe_store(struct heddle_buffers *b, uint64_t i) {
  const struct heddle_pending *p = heddle_buffers_at(b, i);
  if (i < b->napplied) return b->applied[i];
  return (struct heddle_store){.addr = p->address, .cycles = *b->clock, .size = p->size, .weak = p->weak};
}

// Stops buffering, removes the core's stores from memory, newest first, and puts them into out.
size_t heddle_buffers_withdraw(struct heddle_buffers *b) {
  size_t n = b->tail - b->head;
  b->running = b->weak = false;
  for (size_t i = n; i-- > 0;) {
    struct heddle_pending *p = heddle_buffers_at(b, b->head + i);
    b->out[i] = describe_store(b, b->head + i);
    if (p->size) exchange_bytes(b, p, b->out[i].data, p->saved);
  }
  b->head = b->tail = b->napplied = 0;
  return n;
}

// ---- initialization ---------------------------------------------------------

// Prepares buffers of a capacity, 0: without bound.
bool heddle_buffers_init(struct heddle_buffers *b, struct heddle_ram *ram, struct heddle_space **space,
                         const uint64_t *clock, uint32_t capacity) {
  b->ram = ram;
  b->space = space;
  b->clock = clock;
  b->bounded = capacity;
  b->room = 128;
  while (b->room < capacity) b->room *= 2;
  b->limit = capacity ? capacity : b->room;
  b->ring = malloc(b->room * sizeof *b->ring);
  b->out = malloc(b->room * sizeof *b->out);
  b->applied = malloc(b->room * sizeof *b->applied);
  return b->ring && b->out && b->applied;
}

void heddle_buffers_free(struct heddle_buffers *b) {
  free(b->ring);
  free(b->out);
  free(b->applied);
}
