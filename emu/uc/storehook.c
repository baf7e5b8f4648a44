#include "storehook.h"

#include <stdlib.h>

#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

// ---- the hook ---------------------------------------------------------------

static uint64_t address_of(const struct heddle_store_hook *h, uint64_t physical) {
  return h->va[physical >> HEDDLE_PAGE_SHIFT] | OFFSET(physical);
}

static inline void keep_hidden(struct heddle_store_hook *h, uint64_t physical, uint32_t size, uint32_t second) {
  struct heddle_buffers *b = &h->buffers;
  struct heddle_pending *p = heddle_buffers_add(b);
  p->address = address_of(h, physical);
  p->physical = physical;
  p->size = size;
  p->weak = b->weak;
  p->second = (uint16_t)second;
  const uint8_t *memory = b->ram->base + physical;
  // Eight bytes are copied faster than a variable number, where they lie within the page.
  if (__builtin_expect(OFFSET(physical) <= HEDDLE_PAGE_SIZE - 8, 1)) memcpy(p->saved, memory, 8);
  else memcpy(p->saved, memory, size);
}

// A store into two cache lines is two stores. If the second lies in another page, that page is
// copied now if it has other owners; if there is no page, the instruction is about to fault.
static __attribute__((noinline)) void keep_hidden_parts(struct heddle_store_hook *h, uint64_t physical, uint32_t first,
                                                        uint32_t rest) {
  uint64_t address = address_of(h, physical) + first, next = physical + first;
  keep_hidden(h, physical, first, 0);
  if (!OFFSET(next)) {
    uint64_t pte;
    if (heddle_space_walk(h->cpu->space, address, HEDDLE_WRITE, false, &pte)) pte = 0;
    next = pte & ~(HEDDLE_PAGE_SIZE - 1);
    h->va[next >> HEDDLE_PAGE_SHIFT] = address;
  }
  keep_hidden(h, next, rest, 1);
}

static void on_store(uc_engine *uc, uc_mem_type type, uint64_t physical, int size, int64_t value, void *user) {
  (void)uc;
  (void)type;
  (void)value;
  struct heddle_store_hook *h = user;
  if (!h->buffers.running) return;
  uint32_t room = HEDDLE_LINE_SIZE - (uint32_t)(physical % HEDDLE_LINE_SIZE);
  if (__builtin_expect((uint32_t)size <= room, 1)) keep_hidden(h, physical, (uint32_t)size, 0);
  else keep_hidden_parts(h, physical, room, (uint32_t)size - room);
}

// ---- addresses --------------------------------------------------------------

void heddle_store_hook_flushed(struct heddle_cpu *cpu) { cpu->store_hook->epoch++; }

// The engine is about to be given the translation of va to a page. It reports stores by physical
// address only. For the virtual address to be known, the engine may have no other translation of
// the page, except for fetching.
void heddle_store_hook_filled(struct heddle_cpu *cpu, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms) {
  struct heddle_store_hook *h = cpu->store_hook;
  va &= ~(HEDDLE_PAGE_SIZE - 1);
  bool live = h->filled[page] == h->epoch;
  if (type == UC_MEM_FETCH) {
    if (!live || h->va[page] != va) *perms &= ~(uint32_t)UC_PROT_WRITE;
    return;
  }
  if (!(*perms & UC_PROT_WRITE)) return;
  if (live && h->va[page] != va) {
    uc_ctl_flush_tlb(cpu->engine.uc);
    h->epoch++;
  }
  h->va[page] = va;
  h->filled[page] = h->epoch;
}

// ---- initialization ---------------------------------------------------------

static uint64_t *reserve_table(uint64_t n) { return heddle_reserve(n * sizeof(uint64_t)); }

// Starts to observe stores. Nothing may have run yet: the hook is part of the translated code.
int heddle_store_hook_open(struct heddle_cpu *cpu, uint32_t capacity) {
  if (cpu->engine.has_run || cpu->buffers) return UC_ERR_ARG;
  struct heddle_store_hook *h = calloc(1, sizeof *h);
  if (!h) return UC_ERR_NOMEM;
  cpu->store_hook = h;
  cpu->buffers = &h->buffers;
  h->cpu = cpu;
  h->epoch = 1;
  h->va = reserve_table(cpu->ram->pages);
  h->filled = reserve_table(cpu->ram->pages);
  if (!heddle_buffers_init(&h->buffers, cpu->ram, &cpu->space, &cpu->clock, capacity) || !h->va || !h->filled)
    return UC_ERR_NOMEM;
  return uc_hook_add(cpu->engine.uc, &h->hook, UC_HOOK_MEM_WRITE, (void *)on_store, h, (uint64_t)1, (uint64_t)0);
}

void heddle_store_hook_close(struct heddle_cpu *cpu) {
  struct heddle_store_hook *h = cpu->store_hook;
  if (!h) return;
  if (h->hook) uc_hook_del(cpu->engine.uc, h->hook);
  heddle_unreserve(h->va, cpu->ram->pages * sizeof(uint64_t));
  heddle_unreserve(h->filled, cpu->ram->pages * sizeof(uint64_t));
  heddle_buffers_free(&h->buffers);
  free(h);
  cpu->store_hook = NULL;
  cpu->buffers = NULL;
}
