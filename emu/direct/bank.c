// Tables of pages for translated code: a bank has those of one address space.
#define _GNU_SOURCE
#include "engine.h"

#include <stdlib.h>
#include <sys/mman.h>

#define FILLED_MOST 16384u  // entries, after which the tables are given back to the host

static uint64_t *table(const struct direct_bank *b, size_t offset) {
  return (uint64_t *)((uint8_t *)b->context + offset);
}

static uint64_t *pages(const struct direct_bank *b, bool write) { return table(b, write ? BANK_WRITE_PAGES : BANK_READ_PAGES); }
static uint64_t *bytes(const struct direct_bank *b, bool write) { return table(b, write ? BANK_WRITE_BYTES : BANK_READ_BYTES); }

static uint32_t number(uint64_t va) { return (uint32_t)va >> HEDDLE_PAGE_SHIFT; }

// The contents of an entry that is not in use: no address whose entry it is. Memory that
// was never written is such a table but for its first entry.
static uint64_t nowhere(uint32_t i) { return i ? 0 : HEDDLE_PAGE_SIZE; }

// An address that is not canonical. No page has it, and the host refuses it to code that finds it in
// an entry for the stack.
#define NO_ADDRESS ((uint64_t)1 << 63)

static void forget_stack(struct direct_bank *b) {
  struct direct_context *c = b->context;
  c->stack_read[0] = c->stack_read[1] = c->stack_write[0] = c->stack_write[1] = NO_ADDRESS;
}

// The entries for the stack are of pages that are in the tables.
static void forget_page(struct direct_bank *b, uint64_t page) {
  struct direct_context *c = b->context;
  if (c->stack_read[0] == page) c->stack_read[0] = c->stack_read[1] = NO_ADDRESS;
  if (c->stack_write[0] == page) c->stack_write[0] = c->stack_write[1] = NO_ADDRESS;
}

static void reset(struct direct_bank *b) {
  pages(b, false)[0] = pages(b, true)[0] = nowhere(0);
  forget_stack(b);
}

static bool open_bank(struct direct_bank *b) {
  void *p = mmap(NULL, BANK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  b->context = p;
  b->context->leave = direct_leave;
  b->context->leave_unit = direct_leave_unit;
  b->context->miss = direct_miss;
  b->context->settle = direct_settle;
  b->room = 1024;
  b->filled = malloc(b->room * sizeof *b->filled);
  b->units = calloc(UNIT_CACHE, sizeof *b->units);
  b->blocks = calloc(UNIT_CACHE, sizeof *b->blocks);
  b->last_blocks = calloc(UNIT_CACHE, sizeof *b->last_blocks);
  reset(b);
  return b->filled && b->units && b->blocks && b->last_blocks;
}

bool direct_banks_init(struct direct_engine *e) {
  e->bank = &e->banks[0];
  if (!open_bank(e->bank)) return false;
  e->context = e->bank->context;
  return true;
}

void direct_banks_close(struct direct_engine *e) {
  for (unsigned i = 0; i < BANKS; i++) {
    struct direct_bank *b = &e->banks[i];
    if (b->context) munmap(b->context, BANK_BYTES);
    free(b->filled);
    free(b->units);
    free(b->blocks);
    free(b->last_blocks);
  }
}

void direct_bank_flush(struct direct_bank *b) {
  if (b->nfilled > FILLED_MOST) {
    madvise((uint8_t *)b->context + BANK_READ_PAGES, BANK_BYTES - BANK_READ_PAGES, MADV_DONTNEED);
  } else {
    for (uint32_t i = 0; i < b->nfilled; i++) pages(b, b->filled[i] & 1)[b->filled[i] >> 1] = nowhere(b->filled[i] >> 1);
  }
  b->nfilled = 0;
  reset(b);
}

void direct_bank_add(struct direct_bank *b, uint64_t va, uint8_t *host, bool write) {
  uint32_t i = number(va);
  uint64_t *slot = &pages(b, write)[i];
  if (*slot == nowhere(i)) {
    if (b->nfilled == b->room) {
      b->room *= 2;
      b->filled = realloc(b->filled, b->room * sizeof *b->filled);
      if (!b->filled) abort();
    }
    b->filled[b->nfilled++] = i << 1 | write;
  }
  forget_page(b, *slot);
  forget_page(b, page_of(va));
  *slot = page_of(va);
  bytes(b, write)[i] = (uint64_t)(uintptr_t)host;
}

void direct_bank_remove(struct direct_bank *b, uint64_t va, bool write) {
  uint32_t i = number(va);
  // It stays in the list of those in use, where it does no harm.
  if (pages(b, write)[i] == page_of(va)) pages(b, write)[i] = nowhere(i);
  forget_page(b, page_of(va));
}

// Removes the page at va from the tables for writing if it is this one.
void direct_banks_remove(struct direct_engine *e, uint64_t va, uint64_t page) {
  uint64_t host = (uint64_t)(uintptr_t)heddle_ram_bytes(e->ram, page);
  for (unsigned k = 0; k < BANKS; k++) {
    struct direct_bank *b = &e->banks[k];
    if (b->context && bytes(b, true)[number(va)] == host) direct_bank_remove(b, va, true);
  }
}

// A physical page has become code: no write to it goes unnoticed from now on.
void direct_banks_protect(struct direct_engine *e, uint64_t page) {
  uint64_t host = (uint64_t)(uintptr_t)heddle_ram_bytes(e->ram, page);
  for (unsigned k = 0; k < BANKS; k++) {
    struct direct_bank *b = &e->banks[k];
    for (uint32_t i = 0; i < b->nfilled; i++) {
      uint32_t n = b->filled[i] >> 1;
      if ((b->filled[i] & 1) && bytes(b, true)[n] == host) pages(b, true)[n] = nowhere(n);
    }
    if (b->context) forget_stack(b);
  }
}

// Takes the bank of the loaded address space into use, or one for it.
void direct_bank_choose(struct direct_engine *e) {
  struct heddle_space *s = e->space;
  struct direct_bank *oldest = NULL;
  for (unsigned k = 0; k < BANKS; k++) {
    struct direct_bank *b = &e->banks[k];
    if (b->context && b->version == s->version) {
      oldest = b;
      break;
    }
    if (!oldest || b->used < oldest->used) oldest = b;
  }
  if (!oldest->context && !open_bank(oldest)) abort();
  oldest->used = ++e->banks_used;
  e->bank = oldest;
  e->context = oldest->context;
  if (oldest->version == s->version) return;
  direct_bank_flush(oldest);
  oldest->version = s->version;
}

// Empties the tables of all banks.
void direct_banks_flush(struct direct_engine *e) {
  for (unsigned k = 0; k < BANKS; k++)
    if (e->banks[k].context) direct_bank_flush(&e->banks[k]);
}

// Empties the tables of the bank in use if they are outdated.
void direct_bank_refresh(struct direct_engine *e) {
  if (e->bank->version == e->space->version) return;
  direct_bank_flush(e->bank);
  e->bank->version = e->space->version;
}
