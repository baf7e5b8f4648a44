#define _GNU_SOURCE

#include "buffers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

static struct heddle_pending *pending_at(struct heddle_buffers *b, uint64_t i) { return &b->ring[i & (b->room - 1)]; }

// Doubles the ring.
static __attribute__((noinline)) void grow_ring(struct heddle_buffers *b) {
  struct heddle_pending *ring = malloc(2 * b->room * sizeof *ring);
  struct heddle_store *out = realloc(b->out, 2 * b->room * sizeof *out);
  struct heddle_store *applied = realloc(b->applied, 2 * b->room * sizeof *applied);
  if (!ring || !out || !applied) abort();
  for (uint64_t i = b->head; i < b->tail; i++) ring[i & (2 * b->room - 1)] = *pending_at(b, i);
  free(b->ring);
  b->ring = ring;
  b->out = out;
  b->applied = applied;
  b->room *= 2;
  if (!b->bounded) b->limit = b->room;
}

// Adds an entry for one more store. If the buffer is full, its oldest store is committed, by
// forgetting the bytes that it hides.
static inline struct heddle_pending *add_pending(struct heddle_buffers *b) {
  if (b->tail - b->head >= b->limit) {
    if (b->bounded) b->head++;
    else grow_ring(b);
  }
  return pending_at(b, b->tail++);
}

// ---- memory at the address of a store ---------------------------------------

// Saves the bytes at the store's address in hidden, and writes shown there.
static void exchange_bytes(struct heddle_buffers *b, struct heddle_pending *p, uint64_t address, uint8_t *hidden,
                    const uint8_t *shown) {
  uint8_t *memory = b->cpu->ram->base + p->physical;
  memcpy(hidden, memory, p->size);
  memcpy(memory, shown, p->size);
  heddle_ram_written(b->cpu->ram, p->physical >> HEDDLE_PAGE_SHIFT);
  heddle_mem_buffered(b->cpu->ram, p->physical, address, shown, p->size);
}

// ---- the hook ---------------------------------------------------------------

static uint64_t address_of(const struct heddle_buffers *b, const struct heddle_pending *p) {
  return b->va[p->physical >> HEDDLE_PAGE_SHIFT] | OFFSET(p->physical);
}

static inline struct heddle_pending *keep_hidden(struct heddle_buffers *b, uint64_t physical, uint32_t size,
                                                 uint32_t second) {
  struct heddle_pending *p = add_pending(b);
  p->physical = physical;
  p->size = size;
  p->weak = b->weak;
  p->second = second;
  const uint8_t *memory = b->cpu->ram->base + physical;
  // Eight bytes are copied faster than a variable number, where they lie within the page.
  if (__builtin_expect(OFFSET(physical) <= HEDDLE_PAGE_SIZE - 8, 1)) memcpy(p->saved, memory, 8);
  else memcpy(p->saved, memory, size);
  return p;
}

// A store into two cache lines is two stores. If the second lies in another page, that page is
// copied now if it has other owners; if there is no page, the instruction is about to fault.
static __attribute__((noinline)) void keep_hidden_parts(struct heddle_buffers *b, uint64_t physical, uint32_t first,
                                                        uint32_t rest) {
  uint64_t address = address_of(b, keep_hidden(b, physical, first, 0)) + first, next = physical + first;
  if (!OFFSET(next)) {
    uint64_t pte;
    if (heddle_space_walk(b->cpu->space, address, HEDDLE_WRITE, false, &pte)) pte = 0;
    next = pte & ~(HEDDLE_PAGE_SIZE - 1);
    b->va[next >> HEDDLE_PAGE_SHIFT] = address;
  }
  keep_hidden(b, next, rest, 1);
}

static void on_store(uc_engine *uc, uc_mem_type type, uint64_t physical, int size, int64_t value, void *user) {
  (void)uc;
  (void)type;
  (void)value;
  struct heddle_buffers *b = user;
  if (!b->running) return;
  uint32_t room = HEDDLE_LINE_SIZE - (uint32_t)(physical % HEDDLE_LINE_SIZE);
  if (__builtin_expect((uint32_t)size <= room, 1)) keep_hidden(b, physical, (uint32_t)size, 0);
  else keep_hidden_parts(b, physical, room, (uint32_t)size - room);
}

// ---- effects of instructions on the buffer ----------------------------------

static void drain_all(struct heddle_buffers *b) { b->head = b->tail; }

static void add_fence(struct heddle_buffers *b) {
  if (b->head == b->tail || !pending_at(b, b->tail - 1)->size) return;
  struct heddle_pending *p = add_pending(b);
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
    struct heddle_pending *p = pending_at(b, i);
    uint64_t address = p->size ? address_of(b, p) : 0;
    for (uint32_t k = 0; k < p->size; k++)
      if (address + k - va < n) p->saved[k] = bytes[address + k - va];
  }
}

// An access to the page has faulted. If a store crosses pages, its hook was called before that was
// known.
void heddle_buffers_faulted(struct heddle_buffers *b, uint64_t page) {
  if (!b->running || b->head == b->tail || !pending_at(b, b->tail - 1)->second) return;
  const struct heddle_pending *p = pending_at(b, b->tail - 2);  // still in the ring, even if it was committed
  uint64_t address = address_of(b, p), next = address + p->size;
  if (OFFSET(next) || ((address ^ page) >= HEDDLE_PAGE_SIZE && (next ^ page) >= HEDDLE_PAGE_SIZE)) return;
  b->tail -= 2;
  if (b->head > b->tail) b->head = b->tail;
}

// ---- addresses --------------------------------------------------------------

void heddle_buffers_flushed(struct heddle_buffers *b) { b->epoch++; }

// The engine is about to be applied the translation of va to a page. It reports stores by physical
// address only. For the virtual address to be known, the engine may have no other translation of
// the page, except for fetching.
void heddle_buffers_filled(struct heddle_buffers *b, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms) {
  va &= ~(HEDDLE_PAGE_SIZE - 1);
  bool live = b->filled[page] == b->epoch;
  if (type == UC_MEM_FETCH) {
    if (!live || b->va[page] != va) *perms &= ~(uint32_t)UC_PROT_WRITE;
    return;
  }
  if (!(*perms & UC_PROT_WRITE)) return;
  if (live && b->va[page] != va) {
    uc_ctl_flush_tlb(b->cpu->engine.uc);
    b->epoch++;
  }
  b->va[page] = va;
  b->filled[page] = b->epoch;
}

// ---- switching cores --------------------------------------------------------

// Finds the memory at a store's address, for writing. Returns false if no page is there.
static bool locate_store(struct heddle_buffers *b, struct heddle_pending *p, uint64_t address) {
  uint64_t pte;
  if (heddle_space_walk(b->cpu->space, address, HEDDLE_WRITE, true, &pte)) return false;
  p->physical = (pte & ~(HEDDLE_PAGE_SIZE - 1)) + OFFSET(address);
  return true;
}

// Writes the stores of a core, oldest first, over memory, which has the values that all cores see,
// and starts to buffer. A store whose page no longer exists is left out; then the result is false.
bool heddle_buffers_apply(struct heddle_cpu *cpu, const struct heddle_store *stores, size_t n) {
  struct heddle_buffers *b = cpu->buffers;
  b->head = b->tail = 0;
  while (b->room < n) grow_ring(b);
  for (size_t i = 0; i < n; i++) {
    const struct heddle_store *s = &stores[i];
    struct heddle_pending *p = pending_at(b, b->tail);
    *p = (struct heddle_pending){.size = s->size, .weak = s->weak};
    if (s->size && !locate_store(b, p, s->addr)) continue;
    if (s->size) exchange_bytes(b, p, s->addr, p->saved, s->data);
    b->applied[b->tail++] = *s;
  }
  b->napplied = b->tail;
  b->running = true;
  return b->tail == n;
}

// Describes a store for the time in which its core does not run, without its bytes.
static struct heddle_store describe_store(struct heddle_buffers *b, uint64_t i) {
  const struct heddle_pending *p = pending_at(b, i);
  if (i < b->napplied) return b->applied[i];
  return (struct heddle_store){
      .addr = p->size ? address_of(b, p) : 0, .cycles = b->cpu->clock, .size = p->size, .weak = p->weak};
}

// Stops buffering, removes the core's stores from memory, newest first, and puts them into out.
size_t heddle_buffers_withdraw(struct heddle_cpu *cpu) {
  struct heddle_buffers *b = cpu->buffers;
  size_t n = b->tail - b->head;
  b->running = b->weak = false;
  for (size_t i = n; i-- > 0;) {
    struct heddle_pending *p = pending_at(b, b->head + i);
    b->out[i] = describe_store(b, b->head + i);
    if (p->size) exchange_bytes(b, p, b->out[i].addr, b->out[i].data, p->saved);
  }
  b->head = b->tail = b->napplied = 0;
  return n;
}

// ---- initialization ---------------------------------------------------------

static uint64_t *reserve_table(uint64_t n) {
  void *p = mmap(NULL, n * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                 0);
  return p == MAP_FAILED ? NULL : p;
}

// Starts to observe stores. Nothing may have run yet: the hook is part of the translated code.
int heddle_buffers_open(struct heddle_cpu *cpu, uint32_t capacity) {
  if (cpu->engine.has_run || cpu->buffers) return UC_ERR_ARG;
  struct heddle_buffers *b = calloc(1, sizeof *b);
  if (!b) return UC_ERR_NOMEM;
  cpu->buffers = b;
  b->cpu = cpu;
  b->bounded = capacity;
  b->room = 128;
  while (b->room < capacity) b->room *= 2;
  b->limit = capacity ? capacity : b->room;
  b->epoch = 1;
  b->ring = malloc(b->room * sizeof *b->ring);
  b->out = malloc(b->room * sizeof *b->out);
  b->applied = malloc(b->room * sizeof *b->applied);
  b->va = reserve_table(cpu->ram->pages);
  b->filled = reserve_table(cpu->ram->pages);
  if (!b->ring || !b->out || !b->applied || !b->va || !b->filled) return UC_ERR_NOMEM;
  return uc_hook_add(cpu->engine.uc, &b->hook, UC_HOOK_MEM_WRITE, (void *)on_store, b, (uint64_t)1, (uint64_t)0);
}

void heddle_buffers_close(struct heddle_cpu *cpu) {
  struct heddle_buffers *b = cpu->buffers;
  if (!b) return;
  if (b->hook) uc_hook_del(cpu->engine.uc, b->hook);
  if (b->va) munmap(b->va, cpu->ram->pages * sizeof(uint64_t));
  if (b->filled) munmap(b->filled, cpu->ram->pages * sizeof(uint64_t));
  free(b->ring);
  free(b->out);
  free(b->applied);
  free(b);
  cpu->buffers = NULL;
}
