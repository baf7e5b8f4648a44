// Stores for the buffers of package stores.
#include "general.h"

#include "engine.h"

// Finds part k of a store of n bytes by the instruction, as the other engine divides it. False:
// there are no more.
static bool find_part(const struct direct_insn *in, unsigned k, size_t n, size_t *at, size_t *size) {
  static const uint8_t image[][2] = {{0, 2}, {2, 2}, {4, 4}, {8, 8}, {16, 8}};
  unsigned word = in->operand16 && !in->w ? 2 : 4;
  *at = 8 * k;
  *size = 8;
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
      // MXCSR and its mask come after the x87 registers.
      if (k < 5) {
        *at = image[k][0];
        *size = image[k][1];
      } else if (k < 21) {
        *at = 32 + 8 * (k - 5);
      } else if (k < 23) {
        *at = 24 + 4 * (k - 21);
        *size = 4;
      } else {
        *at = 160 + 8 * (k - 23);
      }
      break;
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
      *at = k < 7 ? word * k : 7 * word + 10 * ((k - 7) / 2) + 8 * ((k - 7) & 1);
      *size = k < 7 ? word : (k - 7) & 1 ? 2 : 8;
      break;
    case ZYDIS_MNEMONIC_FBSTP:
      *at = k ? k - 1 : 9;
      *size = 1;
      return k < 10;
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT:
      *at = k ? 2 : 0;
      *size = k ? 8 : 2;
      return k < 2;
    default:
      break;
  }
  if (*at >= n) return false;
  if (*size > n - *at) *size = n - *at;
  return true;
}

static void add(struct direct_engine *e, uint64_t va, const uint8_t *memory, const uint8_t *old, size_t n) {
  struct heddle_buffers *b = e->buffers;
  if (heddle_buffers_is_full(b) && !b->bounded) {
    direct_float_park(e);
    heddle_buffers_grow(b);
  }
  struct heddle_pending *p = heddle_buffers_add(b);
  p->address = va;
  p->physical = (uint64_t)(memory - e->ram->base);
  p->size = (uint32_t)n;
  p->weak = b->weak;
  p->second = 0;
  copy_bytes(p->saved, old, n);
}

// A store into two cache lines is two stores.
static void add_part(struct direct_engine *e, uint64_t va, const uint8_t *old, size_t n) {
  while (n) {
    size_t room = HEDDLE_LINE_SIZE - va % HEDDLE_LINE_SIZE, part = n < room ? n : room;
    add(e, va, direct_locate(e, va, HEDDLE_WRITE), old, part);
    va += part;
    old += part;
    n -= part;
  }
}

// Adds the store of n bytes at va, which may be written, to the buffer. The instruction has made it or
// is about to; old has the bytes from before.
void direct_buffer_store(struct direct_engine *e, const struct direct_insn *in, uint64_t va, const uint8_t *old, size_t n) {
  size_t at, size;
  if (!e->buffers->running) return;
  for (unsigned k = 0; find_part(in, k, n, &at, &size); k++) add_part(e, va + at, old + at, size);
}

// ---- stores of blocks -----------------------------------------------------------------------

// The page of a table for writing is at va from now on: at another address it leaves the tables.
void direct_buffer_address(struct direct_engine *e, uint64_t va, uint64_t page) {
  uint64_t *known = &e->stores.va[page];
  if (*known && *known != page_of(va)) direct_banks_remove(e, *known, page);
  *known = page_of(va);
}

// Adds one part of a logged store, which lies within its page.
static void add_logged(struct direct_engine *e, const struct direct_logged_store *s, unsigned from, unsigned n) {
  const uint8_t *memory = (const uint8_t *)(uintptr_t)(s->pointer + (s->what & LOGGED_OFFSET)) + from;
  const uint8_t *old = (const uint8_t *)s->old + from;
  uint64_t va = e->stores.va[(uint64_t)(memory - e->ram->base) >> HEDDLE_PAGE_SHIFT] + ((memory - e->ram->base) & (HEDDLE_PAGE_SIZE - 1));
  while (n) {
    size_t room = HEDDLE_LINE_SIZE - va % HEDDLE_LINE_SIZE, part = n < room ? n : room;
    add(e, va, memory, old, part);
    va += part;
    memory += part;
    old += part;
    n -= (unsigned)part;
  }
}

// Adds the stores that blocks have logged up to end.
void direct_buffer_logged(struct direct_engine *e, const struct direct_logged_store *end) {
  struct heddle_buffers *b = e->buffers;
  const struct direct_logged_store *s = e->stores.taken;
  e->stores.taken = (struct direct_logged_store *)end;
  if (!b->running) return;
  // Of those that do not fit in together, the first are committed at once.
  if (b->bounded && (uint64_t)(end - s) > b->limit) {
    b->head = b->tail;
    s = end - b->limit;
  }
  for (; s < end; s++) {
    unsigned size = s->what >> LOGGED_SIZE_SHIFT & LOGGED_SIZE;
    b->weak = s->what & LOGGED_WEAK;
    for (unsigned at = 0; at < size; at += 8) add_logged(e, s, at, size - at < 8 ? size - at : 8);
  }
  b->weak = false;
}
