#include "insidelog.h"

#include <string.h>

static bool is_logging(const struct heddle_mem_core *log) { return log->on && !log->muted; }

// Logs the content of the pages that the instruction is about to access, for which the engine may
// not have asked.
void heddle_inside_log_pages(struct heddle_mem_core *log, const struct heddle_space *space, const struct heddle_inside *in) {
  for (uint32_t i = 0; is_logging(log) && i < in->n; i++) {
    uint64_t va = in->pieces[i].addr & ~(HEDDLE_PAGE_SIZE - 1);
    uint64_t pte = heddle_space_get(space, va);
    if (pte) heddle_mem_content(log, pte >> HEDDLE_PAGE_SHIFT, va);
  }
}

static void log_piece(struct heddle_mem_core *log, const struct heddle_space *space, const struct heddle_inside *in,
                      uint32_t number) {
  const struct heddle_piece *p = &in->pieces[number];
  uint64_t va = p->addr & ~(HEDDLE_PAGE_SIZE - 1), pte = heddle_space_get(space, va);
  if (!heddle_mem_selects(log, p->addr, p->size, in->pc)) return;
  heddle_mem_map(log, pte >> HEDDLE_PAGE_SHIFT, va);
  struct heddle_mem_entry *e = heddle_mem_add(log, HEDDLE_MEM_PART);
  e->addr = in->n;
  e->pc = number;
  for (uint32_t at = 0; at < p->size; at += 8) {
    uint32_t left = p->size - at;
    e = heddle_mem_add(log, at ? HEDDLE_MEM_HIGH : p->stores ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD);
    e->addr = p->addr + at;
    memcpy(&e->value, p->bytes + at, left < 8 ? left : 8);
    e->pc = in->pc;
    e->branches = (uint32_t)in->branches;
    e->size = (uint16_t)(at ? left : p->size);
  }
}

// Logs the accesses [from, upto) of an instruction that other cores interrupt.
void heddle_inside_log_pieces(struct heddle_mem_core *log, const struct heddle_space *space, const struct heddle_inside *in,
                              uint32_t from, uint32_t upto) {
  if (!is_logging(log)) return;
  heddle_inside_log_pages(log, space, in);
  for (uint32_t i = from; i < upto; i++) log_piece(log, space, in, i);
}
