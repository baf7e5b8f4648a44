// Units: single instructions, decoded, and translated where the host executes them.
#define _GNU_SOURCE
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "encode.h"

#define UNIT_CODE_MOST 64u  // bytes of a unit's code

bool direct_units_init(struct direct_engine *e) {
  struct direct_units *u = &e->units;
  u->all = heddle_reserve((UNITS + 1) * sizeof *u->all);
  u->hash = heddle_reserve(UNIT_HASH * sizeof *u->hash);
  u->in_page = heddle_reserve(e->ram->pages * sizeof *u->in_page);
  u->epoch = 1;
  e->unit_code = UNIT_CODE_FIRST;
  return u->all && u->hash && u->in_page;
}

void direct_units_close(struct direct_engine *e) {
  struct direct_units *u = &e->units;
  heddle_unreserve(u->all, (UNITS + 1) * sizeof *u->all);
  heddle_unreserve(u->hash, UNIT_HASH * sizeof *u->hash);
  heddle_unreserve(u->in_page, e->ram->pages * sizeof *u->in_page);
}

static uint32_t *hash_slot(struct direct_units *u, uint64_t pc, uint32_t page) {
  uint64_t h = (pc ^ (uint64_t)page << 20) * 0x9e3779b97f4a7c15u;
  return &u->hash[h >> 51];
}
_Static_assert(UNIT_HASH == 1u << (64 - 51), "hash_slot");

static void forget_all(struct direct_engine *e) {
  struct direct_units *u = &e->units;
  for (uint32_t i = 1; i <= u->n; i++)
    for (unsigned k = 0; k < 2; k++)
      if (u->all[i].phys[k] != NO_PAGE) u->in_page[u->all[i].phys[k]] = 0;
  memset(u->hash, 0, UNIT_HASH * sizeof *u->hash);
  u->n = 0;
  u->epoch++;
  e->unit_code = UNIT_CODE_FIRST;
  direct_check_units(e);
}

static void unlink_hash(struct direct_units *u, uint32_t i) {
  uint32_t *at = hash_slot(u, u->all[i].in.pc, u->all[i].phys[0]);
  while (*at && *at != i) at = &u->all[*at].next;
  if (*at) *at = u->all[i].next;
}

// Reports whether the unit lies in two different pages.
static bool has_second(const struct direct_unit *u) { return u->phys[1] != NO_PAGE && u->phys[1] != u->phys[0]; }

// The number of the page among the unit's two.
static unsigned which(const struct direct_unit *unit, uint64_t page) { return unit->phys[0] != page; }

static void unlink_page(struct direct_units *u, uint32_t i, unsigned k) {
  uint32_t page = u->all[i].phys[k];
  uint32_t *at = &u->in_page[page];
  while (*at && *at != i) at = &u->all[*at].next_in_page[which(&u->all[*at], page)];
  if (*at) *at = u->all[i].next_in_page[k];
}

// The page's bytes have changed.
void direct_units_drop_page(struct direct_engine *e, uint64_t page) {
  struct direct_units *u = &e->units;
  if (!u->in_page[page]) return;
  while (u->in_page[page]) {
    uint32_t i = u->in_page[page];
    unlink_hash(u, i);
    unlink_page(u, i, 0);
    if (has_second(&u->all[i])) unlink_page(u, i, 1);
  }
  u->epoch++;
}

// Has no list of units have those of the page.
static void isolate_page(struct direct_engine *e, uint64_t page) {
  struct direct_units *u = &e->units;
  for (uint32_t i = u->in_page[page]; i; i = u->all[i].next_in_page[which(&u->all[i], page)]) {
    uint64_t at = cache_slot(u->all[i].in.pc);
    for (unsigned k = 0; k < BANKS; k++)
      if (e->banks[k].units && e->banks[k].units[at] == &u->all[i]) e->banks[k].units[at] = NULL;
  }
}

// Throws away the translations of pages that were changed since, and has those of pages that have departed
// be looked for anew.
void direct_drop_stale(struct direct_engine *e) {
  struct heddle_ram *ram = e->ram;
  while (ram->ndeparted) {
    uint64_t page = ram->departed[--ram->ndeparted];
    ram->flags[page] &= (uint8_t)~HEDDLE_PAGE_DEPARTED;
    isolate_page(e, page);
    direct_blocks_isolate_page(e, page);
  }
  while (ram->nstale) {
    uint64_t page = ram->stale[--ram->nstale];
    ram->flags[page] &= (uint8_t)~(HEDDLE_PAGE_STALE | HEDDLE_PAGE_CODE);
    direct_units_drop_page(e, page);
    direct_blocks_drop_page(e, page);
  }
}

// ---- translation ------------------------------------------------------------------

// A register that the instruction does not name, for the address of its operand. Where it has
// to do without a REX prefix, one of the first eight.
static unsigned free_register(const struct direct_insn *in) {
  static const uint8_t candidates[] = {RDI, RSI, RBX, RBP, RDX, RCX};
  uint32_t named = in->reads | in->writes;
  for (unsigned i = 0; i < sizeof candidates; i++)
    if (!(named & REGISTER_BIT(candidates[i]))) return candidates[i];
  return RAX;
}

static bool is_rip_relative(const struct direct_insn *in) { return (in->modrm & 0xc7) == 5 && in->has_modrm; }

static void translate(struct direct_engine *e, struct direct_unit *u) {
  const struct direct_insn *in = &u->in;
  uint8_t *start = e->code.writable + e->unit_code;
  struct code c = {start};
  struct place none = at_register(RAX, 0);
  if (in->what & INSN_MEMORY) {
    unsigned s = free_register(in), bit = NO_REGISTER;
    put_load(&c, s, in_context(CONTEXT_POINTER));
    if (in->what & INSN_BIT_STRING) {
      // The pointer is to the word that has the bit; its number within is in SPARE.
      bit = insn_reg(in);
      put_load(&c, bit, in_context(CONTEXT_SPARE));
    }
    put_insn(&c, in, at_register(s, 0), -1);
    put_load(&c, s, in_context(CONTEXT_GPR + 8 * s));
    if (bit != NO_REGISTER) put_load(&c, bit, in_context(CONTEXT_GPR + 8 * bit));
  } else if (in->what & INSN_ADDRESS) {
    const struct direct_operand *m = &in->memory;
    if (is_rip_relative(in)) {
      // LEA of an address that is known.
      uint64_t value = (uint64_t)m->disp;
      if (in->memory.narrow) value = (uint32_t)value;
      if (in->width == 4) value = (uint32_t)value;
      unsigned s = free_register(in), r = insn_reg(in);
      put_constant(&c, s, value);
      if (in->width == 2) put8(&c, 0x66);
      put_op_register(&c, in->width == 8 ? 8 : 4, OP_LOAD, r, s);
      put_load(&c, s, in_context(CONTEXT_GPR + 8 * s));
    } else {
      struct place p = {.base = m->base, .index = m->index, .scale = m->scale, .disp = (int32_t)m->disp};
      put_insn(&c, in, p, -1);
    }
  } else {
    put_insn(&c, in, none, -1);
  }
  put_jump_memory(&c, in_context(CONTEXT_LEAVE_UNIT));
  u->code = direct_executable(&e->code, start);
  e->unit_code += (size_t)(c.at - start);
  e->code_changed = true;
}

static struct direct_unit *make(struct direct_engine *e, uint64_t pc) {
  struct direct_units *all = &e->units;
  if (all->n == UNITS || e->unit_code + UNIT_CODE_MOST > UNIT_CODE_BYTES) forget_all(e);
  uint32_t i = all->n + 1;
  struct direct_unit *u = &all->all[i];
  uint8_t bytes[15];
  memset(u, 0, sizeof *u);
  size_t n = direct_fetch(e, pc, bytes, sizeof bytes, u->phys);
  if (!n) return NULL;
  if (direct_decode(e->level, &e->costs, bytes, n, pc, &u->in) == DECODED_CUT) return NULL;
  // An instruction that the decoder has not got to the end of depends on all bytes that were
  // read.
  size_t length = u->in.length ? u->in.length : n;
  if (offset_of(pc) + length <= HEDDLE_PAGE_SIZE) u->phys[1] = NO_PAGE;
  if (u->in.class == CLASS_NATIVE) translate(e, u);
  all->n = i;
  uint32_t *slot = hash_slot(all, pc, u->phys[0]);
  u->next = *slot;
  *slot = i;
  for (unsigned k = 0; k < 2; k++) {
    if (k && !has_second(u)) break;
    u->next_in_page[k] = all->in_page[u->phys[k]];
    all->in_page[u->phys[k]] = i;
  }
  return u;
}

// Reports whether the unit is of the bytes that the address space has there now.
static bool is_current(struct direct_engine *e, const struct direct_unit *u) {
  uint64_t pte;
  if (u->phys[1] == NO_PAGE) return true;
  if (!heddle_space_peek(e->space, page_of(u->in.pc) + HEDDLE_PAGE_SIZE, HEDDLE_FETCH, &pte)) return false;
  return pte >> HEDDLE_PAGE_SHIFT == u->phys[1];
}

static struct direct_unit *find(struct direct_engine *e, uint64_t pc) {
  uint64_t pte;
  if (!heddle_space_peek(e->space, pc, HEDDLE_FETCH, &pte)) return NULL;
  uint32_t page = (uint32_t)(pte >> HEDDLE_PAGE_SHIFT);
  for (uint32_t i = *hash_slot(&e->units, pc, page); i; i = e->units.all[i].next) {
    struct direct_unit *u = &e->units.all[i];
    if (u->in.pc == pc && u->phys[0] == page && is_current(e, u)) return u;
  }
  return NULL;
}

// The unit at pc in the loaded space. NULL: there is no code there; access, walk and
// fault_address say why.
struct direct_unit *direct_unit_find(struct direct_engine *e, uint64_t pc) {
  direct_float_park(e);
  struct direct_unit *u = find(e, pc);
  if (!u) u = make(e, pc);
  if (u) e->bank->units[cache_slot(pc)] = u;
  return u;
}
