// Physical pages: allocation, reference counts, and pages with code.
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *heddle_reserve(uint64_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void heddle_unreserve(void *at, uint64_t bytes) {
  if (at) munmap(at, bytes);
}

// Has the host supply pages that are about to be written. One that is supplied alone, when it is first
// written, costs many times as much. A failure does not matter.
void heddle_populate(void *at, uint64_t bytes) { madvise(at, bytes, MADV_POPULATE_WRITE); }

// With large pages of the host the guest's memory is a little faster. A failure does not matter.
void heddle_advise_huge(void *at, uint64_t bytes) { madvise(at, bytes, MADV_HUGEPAGE); }

// Returns the number of pages of a RAM.
uint64_t heddle_ram_span(uint64_t limit) { return limit + HEDDLE_PRIVATE_PAGES; }

// Makes RAM number index of count RAMs in the mapping at base.
int heddle_ram_init(struct heddle_ram *ram, uint8_t *base, uint64_t limit, unsigned index, unsigned count) {
  memset(ram, 0, sizeof *ram);
  ram->base = base;
  ram->limit = limit;
  ram->span = heddle_ram_span(limit);
  ram->pages = ram->span * count;
  ram->first = ram->span * index;
  ram->refs = heddle_reserve(ram->pages * sizeof *ram->refs);
  ram->flags = heddle_reserve(ram->pages);
  ram->freed = heddle_reserve(ram->span * sizeof *ram->freed);
  ram->stale = heddle_reserve(ram->pages * sizeof *ram->stale);
  if (count > 1) ram->foreign_index = heddle_reserve(ram->pages * sizeof *ram->foreign_index);
  if (!ram->refs || !ram->flags || !ram->freed || !ram->stale || (count > 1 && !ram->foreign_index)) {
    heddle_ram_close(ram);
    return -1;
  }
  ram->fresh = ram->first + (index == 0);
  ram->refs[HEDDLE_ZERO_PAGE] = 1;
  return 0;
}

void heddle_ram_close(struct heddle_ram *ram) {
  heddle_unreserve(ram->refs, ram->pages * sizeof *ram->refs);
  heddle_unreserve(ram->flags, ram->pages);
  heddle_unreserve(ram->freed, ram->span * sizeof *ram->freed);
  heddle_unreserve(ram->stale, ram->pages * sizeof *ram->stale);
  heddle_unreserve(ram->foreign_index, ram->pages * sizeof *ram->foreign_index);
  for (uint64_t i = 0; i < ram->nforeign; i++) free(ram->foreign[i].bytes);
  free(ram->foreign);
  free(ram->departed);
  memset(ram, 0, sizeof *ram);
}

// Page tables are memory too: a guest that accesses one page in every 2 MiB of a huge mapping must
// reach the limit like any other.
bool heddle_ram_full(const struct heddle_ram *ram) {
  int64_t used = (int64_t)(ram->used + ram->tables) + ram->used_elsewhere + ram->tables_elsewhere;
  return used + 1 >= (int64_t)ram->limit || (!ram->nfreed && ram->fresh >= ram->first + ram->span);
}

// The bytes of a page were changed other than by the functions of spaces: drops translations of it
// and informs the observer.
void heddle_ram_changed(struct heddle_ram *ram, uint64_t page) {
  heddle_ram_written(ram, page);
  if (ram->observer) ram->observer->changed(ram->observed_by, page);
}

// Code that was read from a file is often read again, after a snapshot is restored: freed pages with code, up
// to a number, are the last to be used for something else, and heddle_ram_alloc_filled finds them with their
// translations.
#define KEPT_MOST 256u

// Puts a page that has no owner among those that can be allocated.
void heddle_ram_give_back(struct heddle_ram *ram, uint64_t page) {
  uint32_t p = (uint32_t)page;
  if (ram->flags[page] & HEDDLE_PAGE_CODE) {
    uint64_t at = ram->nkept;
    if (at < KEPT_MOST) ram->nkept++;
    else at = ram->kept_next++ % KEPT_MOST;
    p = ram->freed[at];
    ram->freed[at] = (uint32_t)page;
    if (at == ram->nfreed) {
      ram->nfreed++;
      return;
    }
  }
  ram->freed[ram->nfreed++] = p;
}

// Takes a page from those that can be allocated, of which there must be one: one that was freed, but for those with
// code, if possible. Its bytes are about to change; zero: it has zeros.
uint64_t heddle_ram_take(struct heddle_ram *ram, bool zero) {
  bool has_fresh = ram->fresh < ram->first + ram->span;
  if (ram->nfreed == (has_fresh ? ram->nkept : 0)) return ram->fresh++;
  uint64_t page = ram->freed[--ram->nfreed];
  if (ram->nkept > ram->nfreed) ram->nkept = ram->nfreed;
  if (zero) memset(heddle_ram_bytes(ram, page), 0, HEDDLE_PAGE_SIZE);
  heddle_ram_written(ram, page);
  return page;
}

static uint64_t note_allocated(struct heddle_ram *ram, uint64_t page) {
  ram->refs[page] = 1;
  if (ram->observer) ram->observer->allocated(ram->observed_by, page);
  if (++ram->used > ram->peak) ram->peak = ram->used;
  return page;
}

uint64_t heddle_ram_alloc(struct heddle_ram *ram, bool zero) {
  return heddle_ram_full(ram) ? HEDDLE_NO_PAGE : note_allocated(ram, heddle_ram_take(ram, zero));
}

// Allocates a page with the content of another one, if possible one that has it already.
uint64_t heddle_ram_alloc_filled(struct heddle_ram *ram, const uint8_t *content) {
  if (heddle_ram_full(ram)) return HEDDLE_NO_PAGE;
  for (uint64_t i = ram->nkept; i--;) {
    uint64_t page = ram->freed[i];
    if (memcmp(heddle_ram_bytes(ram, page), content, HEDDLE_PAGE_SIZE)) continue;
    ram->freed[i] = ram->freed[--ram->nkept];
    ram->freed[ram->nkept] = ram->freed[--ram->nfreed];
    return note_allocated(ram, page);
  }
  uint64_t page = heddle_ram_alloc(ram, false);
  memcpy(heddle_ram_bytes(ram, page), content, HEDDLE_PAGE_SIZE);
  return page;
}

void heddle_ram_ref(struct heddle_ram *ram, uint64_t page) {
  if (page != HEDDLE_ZERO_PAGE && heddle_ram_owns(ram, page)) ram->refs[page]++;
}

void heddle_ram_unref(struct heddle_ram *ram, uint64_t page) {
  if (page == HEDDLE_ZERO_PAGE || !heddle_ram_owns(ram, page) || --ram->refs[page]) return;
  ram->used--;
  heddle_ram_give_back(ram, page);
}

// The page's bytes were changed by something other than the engine: its translations must be
// dropped before the engine runs again.
void heddle_ram_written(struct heddle_ram *ram, uint64_t page) {
  if ((ram->flags[page] & (HEDDLE_PAGE_CODE | HEDDLE_PAGE_STALE)) == HEDDLE_PAGE_CODE) {
    ram->flags[page] |= HEDDLE_PAGE_STALE;
    ram->stale[ram->nstale++] = (uint32_t)page;
  }
}

// A space that had the page as code is gone, while others that have code in common with it stay.
void heddle_ram_departs(struct heddle_ram *ram, uint64_t page) {
  if ((ram->flags[page] & (HEDDLE_PAGE_CODE | HEDDLE_PAGE_DEPARTED)) != HEDDLE_PAGE_CODE) return;
  if (ram->ndeparted == ram->departed_room) {
    ram->departed_room = ram->departed_room ? 2 * ram->departed_room : 64;
    ram->departed = realloc(ram->departed, ram->departed_room * sizeof *ram->departed);
    if (!ram->departed) abort();
  }
  ram->flags[page] |= HEDDLE_PAGE_DEPARTED;
  ram->departed[ram->ndeparted++] = (uint32_t)page;
}

// A page becomes code. The owner of a foreign page may change it once nothing here refers to it,
// without notice, so the translated bytes are kept.
void heddle_ram_becomes_code(struct heddle_ram *ram, uint64_t page) {
  ram->flags[page] |= HEDDLE_PAGE_CODE;
  if (heddle_ram_owns(ram, page)) return;
  if (!ram->foreign_index[page]) {
    if (ram->nforeign == ram->foreign_room) {
      ram->foreign_room = ram->foreign_room ? 2 * ram->foreign_room : 256;
      ram->foreign = realloc(ram->foreign, ram->foreign_room * sizeof *ram->foreign);
      if (!ram->foreign) abort();
    }
    struct heddle_foreign_code c = {(uint32_t)page, malloc(HEDDLE_PAGE_SIZE)};
    if (!c.bytes) abort();
    ram->foreign[ram->nforeign++] = c;
    ram->foreign_index[page] = (uint32_t)ram->nforeign;
  }
  memcpy(ram->foreign[ram->foreign_index[page] - 1].bytes, heddle_ram_bytes(ram, page), HEDDLE_PAGE_SIZE);
}

// Marks translations of foreign pages that have changed as outdated. The caller does this before it
// reads new foreign pages.
void heddle_ram_check_foreign(struct heddle_ram *ram) {
  for (uint64_t i = 0; i < ram->nforeign;) {
    struct heddle_foreign_code *c = &ram->foreign[i];
    bool code = ram->flags[c->page] & HEDDLE_PAGE_CODE;
    if (code && !memcmp(c->bytes, heddle_ram_bytes(ram, c->page), HEDDLE_PAGE_SIZE)) {
      i++;
      continue;
    }
    if (code) heddle_ram_written(ram, c->page);
    ram->foreign_index[c->page] = 0;
    free(c->bytes);
    *c = ram->foreign[--ram->nforeign];
    if (i < ram->nforeign) ram->foreign_index[c->page] = (uint32_t)(i + 1);
  }
}
