#define _GNU_SOURCE

#include "buffers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

static struct heddle_pending *at(struct heddle_buffers *b, uint64_t i) { return &b->ring[i & (b->room - 1)]; }

// Doubles the ring.
static __attribute__((noinline)) void grow(struct heddle_buffers *b) {
  struct heddle_pending *ring = malloc(2 * b->room * sizeof *ring);
  struct heddle_store *out = realloc(b->out, 2 * b->room * sizeof *out);
  if (!ring || !out) abort();
  for (uint64_t i = b->head; i < b->tail; i++) ring[i & (2 * b->room - 1)] = *at(b, i);
  free(b->ring);
  b->ring = ring;
  b->out = out;
  b->room *= 2;
}

// A place for one more store. When the buffer is full the oldest one is
// committed, which is to forget what it hides.
static struct heddle_pending *push(struct heddle_buffers *b) {
  if (b->capacity && b->tail - b->head >= b->capacity) {
    b->head++;
    b->overflowed++;
  }
  if (b->tail - b->head == b->room) grow(b);
  return at(b, b->tail++);
}

// ---- memory under a store ---------------------------------------------------

static void swap_part(struct heddle_buffers *b, uint64_t physical, uint64_t addr, uint8_t *hidden, const uint8_t *shown,
                      uint32_t n) {
  uint8_t *memory = b->cpu->ram->base + physical;
  memcpy(hidden, memory, n);
  memcpy(memory, shown, n);
  heddle_ram_written(b->cpu->ram, physical >> HEDDLE_PAGE_SHIFT);
  heddle_mem_view(b->cpu->ram, physical, addr, shown, n);
}

// Keeps what is in memory at the store's place and puts other bytes there.
static void swap_in(struct heddle_buffers *b, struct heddle_pending *p, uint8_t *hidden, const uint8_t *shown) {
  uint32_t first = p->first;
  swap_part(b, p->physical[0], p->store.addr, hidden, shown, first);
  if (first < p->store.size)
    swap_part(b, p->physical[1], p->store.addr + first, hidden + first, shown + first, p->store.size - first);
}

// Where the second page's part of a store is.
static bool find_second(struct heddle_buffers *b, struct heddle_pending *p) {
  uint64_t pte;
  if (heddle_space_walk(b->cpu->space, p->store.addr + p->first, HEDDLE_WRITE, true, &pte)) return false;
  p->physical[1] = pte & ~(HEDDLE_PAGE_SIZE - 1);
  return true;
}

static uint32_t on_first_page(uint64_t addr, uint32_t size) {
  uint64_t room = HEDDLE_PAGE_SIZE - OFFSET(addr);
  return room < size ? (uint32_t)room : size;
}

// ---- the hook ---------------------------------------------------------------

static void on_store(uc_engine *uc, uc_mem_type type, uint64_t physical, int size, int64_t value, void *user) {
  (void)uc;
  (void)type;
  (void)value;
  struct heddle_buffers *b = user;
  if (!b->running) return;
  struct heddle_pending *p = push(b);
  uint64_t offset = OFFSET(physical);
  const uint8_t *memory = b->cpu->ram->base + physical;
  b->stores++;
  p->store.addr = b->va[physical >> HEDDLE_PAGE_SHIFT] | offset;
  p->store.cycles = b->cpu->clock;
  p->store.size = (uint32_t)size;
  p->store.weak = b->weak;
  p->physical[0] = physical;
  p->first = (uint32_t)size;
  if (__builtin_expect(offset <= HEDDLE_PAGE_SIZE - 8, 1)) {
    memcpy(p->saved, memory, 8);
    return;
  }
  p->first = on_first_page(physical, (uint32_t)size);
  memcpy(p->saved, memory, p->first);
  if (p->first == (uint32_t)size) return;
  // If the second page is not there the instruction is about to fault.
  uint64_t pte;
  if (heddle_space_walk(b->cpu->space, p->store.addr + p->first, HEDDLE_READ, false, &pte)) pte = 0;
  p->physical[1] = pte & ~(HEDDLE_PAGE_SIZE - 1);
  memcpy(p->saved + p->first, b->cpu->ram->base + p->physical[1], (size_t)size - p->first);
}

// ---- what instructions do to the buffer -------------------------------------

static void drain(struct heddle_buffers *b) { b->head = b->tail; }

static void fence(struct heddle_buffers *b) {
  if (!b->fences || b->head == b->tail || !at(b, b->tail - 1)->store.size) return;
  struct heddle_pending *p = push(b);
  memset(p, 0, sizeof *p);
}

// An instruction with a meaning for the order of accesses is about to run.
void heddle_buffers_before(struct heddle_buffers *b, uint32_t order) {
  if (!b->running) return;
  if (order & (HEDDLE_ORDER_LOCKED | HEDDLE_ORDER_FULL)) drain(b);
  if (order & HEDDLE_ORDER_STORES) fence(b);
  b->weak = order & HEDDLE_ORDER_WEAK;
  b->fences |= b->weak;
}

void heddle_buffers_after(struct heddle_buffers *b, uint32_t order) {
  if (!b->running) return;
  if (order & HEDDLE_ORDER_LOCKED) drain(b);
  b->weak = false;
}

// An access to the page failed. A store that crosses pages was announced
// before that was known.
void heddle_buffers_faulted(struct heddle_buffers *b, uint64_t page) {
  if (!b->running || b->head == b->tail) return;
  struct heddle_pending *p = at(b, b->tail - 1);
  if (p->first < p->store.size && ((p->store.addr ^ page) < HEDDLE_PAGE_SIZE || ((p->store.addr + p->first) ^ page) < HEDDLE_PAGE_SIZE))
    b->tail--;
}

// ---- addresses --------------------------------------------------------------

void heddle_buffers_flushed(struct heddle_buffers *b) { b->epoch++; }

// The engine is about to be told that the address va is in a page. It tells
// stores by their page alone: so that the address is known, no other address of
// the page may be in the engine's translations, but for fetching.
void heddle_buffers_filled(struct heddle_buffers *b, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms) {
  va &= ~(HEDDLE_PAGE_SIZE - 1);
  bool live = b->filled[page] == b->epoch;
  if (type == UC_MEM_FETCH) {
    if (!live || b->va[page] != va) *perms &= ~(uint32_t)UC_PROT_WRITE;
    return;
  }
  if (!(*perms & UC_PROT_WRITE)) return;
  if (live && b->va[page] != va) {
    uc_ctl_flush_tlb(b->cpu->uc);
    b->epoch++;
  }
  b->va[page] = va;
  b->filled[page] = b->epoch;
}

// ---- switching cores --------------------------------------------------------

// Lays the stores of a core, oldest first, over memory, which is what all cores
// see, and begins to buffer. A store whose page is not there any more is left out,
// which the result tells.
bool heddle_buffers_lay(struct heddle_cpu *cpu, const struct heddle_store *stores, size_t n) {
  struct heddle_buffers *b = cpu->buffers;
  b->head = b->tail = 0;
  while (b->room < n) grow(b);
  for (size_t i = 0; i < n; i++) {
    struct heddle_pending *p = at(b, b->tail);
    uint64_t pte;
    p->store = stores[i];
    if (p->store.size) {
      p->first = on_first_page(p->store.addr, p->store.size);
      if (heddle_space_walk(cpu->space, p->store.addr, HEDDLE_WRITE, true, &pte)) continue;
      p->physical[0] = (pte & ~(HEDDLE_PAGE_SIZE - 1)) + OFFSET(p->store.addr);
      if (p->first < p->store.size && !find_second(b, p)) continue;
      swap_in(b, p, p->saved, p->store.data);
    }
    b->tail++;
  }
  b->running = true;
  return b->tail == n;
}

// Stops buffering, takes the core's stores off memory, newest first, and leaves
// them in out.
size_t heddle_buffers_park(struct heddle_cpu *cpu) {
  struct heddle_buffers *b = cpu->buffers;
  size_t n = b->tail - b->head;
  b->running = b->weak = false;
  for (size_t i = n; i-- > 0;) {
    struct heddle_pending *p = at(b, b->head + i);
    if (p->store.size) swap_in(b, p, p->store.data, p->saved);
    b->out[i] = p->store;
  }
  b->head = b->tail = 0;
  return n;
}

// ---- setting up -------------------------------------------------------------

static uint64_t *reserve(uint64_t n) {
  void *p = mmap(NULL, n * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

// Begins to watch stores. Nothing may have run yet: what is translated has the
// hook in it.
int heddle_buffers_open(struct heddle_cpu *cpu, uint32_t capacity, bool fences) {
  if (cpu->ran || cpu->buffers) return UC_ERR_ARG;
  struct heddle_buffers *b = calloc(1, sizeof *b);
  if (!b) return UC_ERR_NOMEM;
  cpu->buffers = b;
  b->cpu = cpu;
  b->capacity = capacity;
  b->fences = fences;
  b->room = 128;
  b->epoch = 1;
  b->ring = malloc(b->room * sizeof *b->ring);
  b->out = malloc(b->room * sizeof *b->out);
  b->va = reserve(cpu->ram->limit);
  b->filled = reserve(cpu->ram->limit);
  if (!b->ring || !b->out || !b->va || !b->filled) return UC_ERR_NOMEM;
  return uc_hook_add(cpu->uc, &b->hook, UC_HOOK_MEM_WRITE, (void *)on_store, b, (uint64_t)1, (uint64_t)0);
}

void heddle_buffers_close(struct heddle_cpu *cpu) {
  struct heddle_buffers *b = cpu->buffers;
  if (!b) return;
  if (b->hook) uc_hook_del(cpu->uc, b->hook);
  if (b->va) munmap(b->va, cpu->ram->limit * sizeof(uint64_t));
  if (b->filled) munmap(b->filled, cpu->ram->limit * sizeof(uint64_t));
  free(b->ring);
  free(b->out);
  free(b);
  cpu->buffers = NULL;
}
