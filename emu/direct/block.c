// The blocks that there are: finding, linking and dropping them.
#define _GNU_SOURCE
#include "block.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "encode.h"

static size_t blocks_bytes(void) { return BLOCKS * sizeof(struct direct_block); }
static size_t exits_bytes(void) { return (REGIONS * REGION_EXITS + 1) * sizeof(struct direct_exit); }
static size_t points_bytes(void) { return REGIONS * REGION_POINTS * sizeof(struct direct_point); }

bool direct_blocks_init(struct direct_engine *e) {
  struct direct_blocks *a = e->blocks = calloc(1, sizeof *a);
  if (!a) return false;
  a->all = heddle_reserve(blocks_bytes());
  a->exits = heddle_reserve(exits_bytes());
  a->points = heddle_reserve(points_bytes());
  a->hash = heddle_reserve(BLOCK_HASH * sizeof *a->hash);
  a->in_page = heddle_reserve(e->ram->pages * sizeof *a->in_page);
  a->at = heddle_reserve(BLOCK_AT * sizeof *a->at);
  a->apart = calloc(UNIT_CACHE, sizeof *a->apart);
  if (!a->all || !a->exits || !a->points || !a->hash || !a->in_page || !a->at || !a->apart) return false;
  direct_translate_shared(e);
  return true;
}

void direct_blocks_close(struct direct_engine *e) {
  struct direct_blocks *a = e->blocks;
  if (!a) return;
  heddle_unreserve(a->all, blocks_bytes());
  heddle_unreserve(a->exits, exits_bytes());
  heddle_unreserve(a->points, points_bytes());
  heddle_unreserve(a->hash, BLOCK_HASH * sizeof *a->hash);
  heddle_unreserve(a->in_page, e->ram->pages * sizeof *a->in_page);
  heddle_unreserve(a->at, BLOCK_AT * sizeof *a->at);
  free(a->apart);
  free(a);
  e->blocks = NULL;
}

// ---- targets of indirect branches ------------------------------------------------------

static uint64_t *target_slot(const struct direct_bank *b, uint64_t pc) {
  return (uint64_t *)((uint8_t *)b->context + BANK_TARGETS) + (pc & (BANK_TARGETS_COUNT - 1));
}

static uint64_t target_of(const struct direct_engine *e, const struct direct_block *b) {
  return (uint64_t)(uintptr_t)direct_block_code(e, b, b->checked);
}

// Has indirect branches to the block find it.
void direct_block_target(struct direct_engine *e, struct direct_block *b) {
  *target_slot(e->bank, b->pc) = target_of(e, b);
  b->is_target = true;
  e->bank->has_targets = true;
}

// Notes that the loaded space has the block's code.
static void hold(struct direct_engine *e, const struct direct_block *b) {
  *direct_held(e, e->bank, b) = 1;
  e->bank->held |= 1u << b->region;
}
_Static_assert(REGIONS <= 32, "direct_bank.held");

// Forgets which blocks are of the bank's space.
void direct_blocks_forget(struct direct_bank *b) {
  uint8_t *held = (uint8_t *)b->context + BANK_HELD;
  for (unsigned r = 0; r < REGIONS; r++)
    if (b->held >> r & 1) memset(held + 1 + r * REGION_BLOCKS, 0, REGION_BLOCKS);
  b->held = 0;
  if (b->has_targets) madvise((uint8_t *)b->context + BANK_TARGETS, BANK_TARGETS_COUNT * sizeof(uint64_t), MADV_DONTNEED);
  b->has_targets = false;
}

static void remove_target(struct direct_engine *e, const struct direct_block *b) {
  if (!b->is_target) return;
  for (unsigned k = 0; k < BANKS; k++) {
    if (!e->banks[k].context) continue;
    uint64_t *slot = target_slot(&e->banks[k], b->pc);
    if (*slot == target_of(e, b)) *slot = 0;
  }
}

// ---- links --------------------------------------------------------------------------------

static void set_jump(struct direct_engine *e, struct direct_block *b, uint32_t jump, const uint8_t *writable_target) {
  patch_jump(b->start + jump, writable_target);
  e->code_changed = true;
}

// Has the exit jump to a place without storing the flags.
static void skip_flags(struct direct_engine *e, struct direct_block *b, const struct direct_exit *x, const uint8_t *place) {
  struct code c = {b->start + x->flags};
  patch_jump(put_jump_if(&c, CC_NS), place);
  patch_jump(put_jump(&c), b->start + x->flags_leave);
  e->code_changed = true;
}

// Reports whether each space that has the pages of one block at its addresses has those of another.
static bool has_pages_of(const struct direct_block *b, const struct direct_block *other) {
  for (unsigned k = 0; k < other->pages; k++) {
    unsigned i = 0;
    while (i < b->pages && (b->virt[i] != other->virt[k] || b->phys[i] != other->phys[k])) i++;
    if (i == b->pages) return false;
  }
  return true;
}

#define WAY_BYTES 32u  // at most

// Code that goes to a place of a block if the bank's space has it, and elsewhere otherwise. It lies in the region that new
// blocks go to, which is emptied after the one or with the one of any block that there is. NULL: there is no room.
static const uint8_t *make_way(struct direct_engine *e, const struct direct_block *to, const uint8_t *place, const uint8_t *otherwise) {
  struct direct_blocks *a = e->blocks;
  struct direct_region *r = &a->regions[a->region];
  if (r->bytes + WAY_BYTES > REGION_BYTES) return NULL;
  uint8_t *start = e->code.writable + UNIT_CODE_BYTES + a->region * REGION_BYTES + r->bytes;
  struct code c = {start};
  put_compare_memory(&c, 1, in_context(BANK_HELD + direct_block_number(e, to)), 0);
  patch_jump(put_jump_if(&c, CC_Z), otherwise);
  patch_jump(put_jump(&c), place);
  r->bytes += WAY_BYTES;
  return start;
}

// Has the exit jump to another block from now on. A block that has changed registers' places goes
// past changing them back and forth if the other has changed the same.
void direct_block_link(struct direct_engine *e, struct direct_exit *x, struct direct_block *to) {
  struct direct_block *from = &e->blocks->all[x->block];
  bool same = x->jump[0] && !memcmp(from->swapped, to->swapped, sizeof from->swapped) && !to->needs_flags;
  const uint8_t *place = to->start + (same ? to->inner : to->entry);
  bool by_way = from->shared && !(to->shared && has_pages_of(from, to));
  if (by_way) place = make_way(e, to, place, from->start + x->start[!same]);
  if (!place) return;
  set_jump(e, from, x->jump[!same], place);
  if (x->flags && to->ignores_flags && !by_way) skip_flags(e, from, x, same || !x->jump[0] ? place : from->start + x->start[0]);
  x->linked = direct_block_number(e, to);
  x->next_linked = to->linked;
  to->linked = (uint32_t)(x - e->blocks->exits);
}

// Has the exit go to C again.
static void unlink_exit(struct direct_engine *e, struct direct_exit *x) {
  struct direct_blocks *a = e->blocks;
  struct direct_block *from = &a->all[x->block];
  uint32_t number = (uint32_t)(x - a->exits);
  if (!x->linked) return;
  uint32_t *at = &a->all[x->linked].linked;
  while (*at && *at != number) at = &a->exits[*at].next_linked;
  if (*at) *at = x->next_linked;
  for (unsigned k = 0; k < 2; k++)
    if (x->jump[k]) set_jump(e, from, x->jump[k], from->start + x->start[k]);
  if (x->flags) memcpy(from->start + x->flags, x->flag_code, sizeof x->flag_code);
  x->linked = 0;
}

static void unlink_exits(struct direct_engine *e, struct direct_block *b) {
  for (unsigned i = 0; i < b->exits; i++) unlink_exit(e, &e->blocks->exits[b->first_exit + i]);
}

// ---- dropping -------------------------------------------------------------------------------

static uint32_t *hash_slot(struct direct_blocks *a, uint64_t pc, uint32_t page) {
  uint64_t h = (pc ^ (uint64_t)page << 20) * 0x9e3779b97f4a7c15u;
  return &a->hash[h >> 47];
}
_Static_assert(BLOCK_HASH == 1u << (64 - 47), "hash_slot");

// Where the list of the blocks with instructions in a virtual page begins.
static uint32_t *at_slot(struct direct_blocks *a, uint64_t virt) {
  return &a->at[(virt >> HEDDLE_PAGE_SHIFT) * 0x9e3779b97f4a7c15u >> 50];
}
_Static_assert(BLOCK_AT == 1u << (64 - 50), "at_slot");

// The number of a block's page in these lists: 0 is none.
static uint32_t at_number(const struct direct_engine *e, const struct direct_block *b, unsigned k) {
  return direct_block_number(e, b) * BLOCK_PAGES + k;
}

static uint32_t *next_at(struct direct_blocks *a, uint32_t number) { return &a->all[number / BLOCK_PAGES].next_at[number % BLOCK_PAGES]; }

// The number of the page among the block's.
static unsigned which(const struct direct_block *b, uint32_t page) {
  unsigned k = 0;
  while (b->phys[k] != page) k++;
  return k;
}

// Has nothing lead to the block or from it but the search for blocks.
static void isolate(struct direct_engine *e, struct direct_block *b) {
  struct direct_blocks *a = e->blocks;
  remove_target(e, b);
  unlink_exits(e, b);
  while (b->linked) unlink_exit(e, &a->exits[b->linked]);
  for (unsigned k = 0; k < BANKS; k++) {
    struct direct_block **known = b->is_last ? e->banks[k].last_blocks : e->banks[k].blocks;
    if (known && known[cache_slot(b->pc)] == b) known[cache_slot(b->pc)] = NULL;
    if (e->banks[k].context) *direct_held(e, &e->banks[k], b) = 0;
  }
}

static void drop(struct direct_engine *e, struct direct_block *b) {
  struct direct_blocks *a = e->blocks;
  uint32_t i = direct_block_number(e, b);
  if (!b->live) return;
  isolate(e, b);
  uint32_t *at = hash_slot(a, b->pc, b->phys[0]);
  while (*at && *at != i) at = &a->all[*at].next;
  if (*at) *at = b->next;
  for (unsigned k = 0; k < b->pages; k++) {
    at = &a->in_page[b->phys[k]];
    while (*at && *at != i) at = &a->all[*at].next_in_page[which(&a->all[*at], b->phys[k])];
    if (*at) *at = b->next_in_page[k];
    at = at_slot(a, b->virt[k]);
    while (*at && *at != at_number(e, b, k)) at = next_at(a, *at);
    if (*at) *at = b->next_at[k];
  }
  b->live = false;
}

void direct_blocks_drop_page(struct direct_engine *e, uint64_t page) {
  struct direct_blocks *a = e->blocks;
  while (a->in_page[page]) drop(e, &a->all[a->in_page[page]]);
}

// Isolates the blocks of a page, which are of no lineage until they are found.
void direct_blocks_isolate_page(struct direct_engine *e, uint64_t page) {
  struct direct_blocks *a = e->blocks;
  for (uint32_t i = a->in_page[page]; i; i = a->all[i].next_in_page[which(&a->all[i], (uint32_t)page)]) {
    isolate(e, &a->all[i]);
    a->all[i].code = 0;
    a->all[i].shared = false;
  }
}

// Has each access of the block at this address have a check of its own.
void direct_block_check_apart(struct direct_engine *e, struct direct_block *b) {
  e->blocks->apart[cache_slot(b->pc)] = b->pc;
  drop(e, b);
}

static struct direct_block *first_of(struct direct_blocks *a, unsigned region) { return &a->all[1 + region * REGION_BLOCKS]; }

static void empty_region(struct direct_engine *e, unsigned region) {
  struct direct_blocks *a = e->blocks;
  for (uint32_t i = 0; i < a->regions[region].nblocks; i++) drop(e, first_of(a, region) + i);
  a->regions[region] = (struct direct_region){0};
  e->log.memory.era = heddle_mem_new_era();
  e->units.epoch++;
}

void direct_blocks_drop_all(struct direct_engine *e) {
  for (unsigned r = 0; r < REGIONS; r++) empty_region(e, r);
}

// Drops the blocks of all address spaces that may have the instruction at the address, or with whole all that have
// instructions in its page: those that end before it, too.
void direct_blocks_drop_address(struct direct_engine *e, uint64_t va, bool whole) {
  struct direct_blocks *a = e->blocks;
  for (uint32_t i = *at_slot(a, page_of(va)); i; i = *next_at(a, i)) {
    struct direct_block *b = &a->all[i / BLOCK_PAGES];
    unsigned k = i % BLOCK_PAGES;
    bool has = b->low[k] <= offset_of(va) && offset_of(va) <= b->high[k];
    if (b->virt[k] == page_of(va) && (whole || has)) drop(e, b);
  }
}

// ---- making ----------------------------------------------------------------------------------

// Reports whether the flags of a shift by CL can be found after it: CL is still there, and no flag is
// undefined because the count is the width or more.
static bool is_counted_simply(const struct direct_insn *in) {
  bool beyond = in->width < 4 && (in->mnemonic == ZYDIS_MNEMONIC_SHL || in->mnemonic == ZYDIS_MNEMONIC_SHR);
  return !beyond && !(in->writes & REGISTER_BIT(RCX));
}

// Reports whether translated code can log the stores of the instruction for buffers.
static bool has_simple_store(const struct direct_insn *in) {
  if (!(in->what & INSN_STORES)) return true;
  bool fits = in->size == 1 || in->size == 2 || in->size == 4 || in->size == 8 || in->size == 10 || in->size == 16;
  return fits && in->mnemonic != ZYDIS_MNEMONIC_FBSTP;
}

// Reports whether blocks have atomic instructions and fences: nothing has to be done before or after
// one, and no run stops at one.
static bool has_atomics(const struct direct_engine *e) {
  return !e->buffers && !e->private_pages && !e->stops_at_sync && !(e->log.what & (LOG_ATOMICS | LOG_UNITS));
}

// Reports whether translated code has the instruction; otherwise C executes it.
static bool is_translated(const struct direct_engine *e, const struct direct_insn *in) {
  bool memory = in->what & INSN_MEMORY;
  if (memory && (!in->size || in->size > 64)) return false;
  if (e->buffers && !has_simple_store(in)) return false;
  if (e->private_pages && in->order) return false;
  if ((in->what & (INSN_ATOMIC | INSN_FENCE)) && !has_atomics(e)) return false;
  switch ((enum direct_class)in->class) {
    case CLASS_NATIVE:
      // BT of a register in memory has an address that depends on the register.
      if (in->what & INSN_BIT_STRING) return false;
      if ((in->what & INSN_HIGH_BYTE) && (memory || (in->what & INSN_ADDRESS))) return false;
      return !(in->what & INSN_FLAGS_BY_COUNT) || is_counted_simply(in);
    case CLASS_NOTHING:
    case CLASS_PREFETCH:
      return true;
    case CLASS_JUMP:
    case CLASS_JUMP_IF:
      return is_canonical(in->target);
    case CLASS_CALL:
      return is_canonical(in->target) && !in->operand16;
    case CLASS_JUMP_TO:
    case CLASS_CALL_TO:
    case CLASS_RETURN:
      return !in->operand16;
    case CLASS_PUSH:
      return !in->operand16 && !memory;
    case CLASS_POP:
      return !in->operand16 && !memory && direct_stack_register(in) != RSP;
    case CLASS_LEAVE:
      return !in->operand16;
    default:
      return false;
  }
}

static bool ends_block(const struct direct_insn *in) {
  return in->class == CLASS_JUMP_TO || in->class == CLASS_CALL_TO || in->class == CLASS_RETURN;
}

// The registers that the block must have in their places for the instruction.
static uint32_t registers_of(const struct direct_insn *in) {
  return in->reads | in->writes | in->address_reads | REGISTER_BIT(RSP);
}

// Notes the pages of an instruction's bytes. False: they are too many.
static bool add_pages(struct direct_block *b, uint64_t pc, size_t length, const uint32_t phys[2]) {
  for (unsigned k = 0; k < 2; k++) {
    uint64_t virt = page_of(pc) + k * HEDDLE_PAGE_SIZE;
    if (k && offset_of(pc) + length <= HEDDLE_PAGE_SIZE) break;
    unsigned i = 0;
    while (i < b->pages && b->virt[i] != virt) i++;
    if (i == b->pages) {
      for (unsigned j = 0; j < b->pages; j++)
        if (b->phys[j] == phys[k]) return false;
      if (b->pages == BLOCK_PAGES) return false;
      b->virt[i] = virt;
      b->phys[i] = phys[k];
      b->low[i] = HEDDLE_PAGE_SIZE;
      b->high[i] = 0;
      b->pages++;
    }
    if (k) continue;
    if (offset_of(pc) < b->low[i]) b->low[i] = (uint16_t)offset_of(pc);
    if (offset_of(pc) > b->high[i]) b->high[i] = (uint16_t)offset_of(pc);
  }
  return true;
}

// The registers that the block can have in their places: code needs two itself, and one for a log.
static int registers_most(const struct direct_engine *e) { return log_has_register(&e->log) ? 13 : 14; }

// The number of the block's instruction at pc, or of none.
static unsigned find_insn(const struct outline *o, uint64_t pc) {
  unsigned i = 0;
  while (i < o->n && o->insns[i].pc != pc) i++;
  return i;
}

// Reports whether the branch, the last instruction, closes a loop whose body fits in once more.
static bool closes_short_loop(const struct outline *o) {
  const struct direct_insn *in = &o->insns[o->n - 1];
  unsigned first = find_insn(o, in->target), body = o->n;
  if (in->class != CLASS_JUMP_IF || first == o->n) return false;
  for (unsigned i = first; i + 1 < o->n; i++)
    if (o->insns[i].pc == in->pc) body = i + 1;
  return o->n + (body - first) <= BLOCK_INSNS && 2 * o->cost <= BLOCK_COST;
}

// Adds the instruction at o->next. False: the block ends before it.
static bool add_insn(struct direct_engine *e, struct outline *o) {
  struct direct_insn *in = &o->insns[o->n];
  uint8_t bytes[15];
  uint32_t phys[2];
  uint64_t pc = o->next;
  if (direct_has_breakpoint(e, pc) || (!o->unrolled && find_insn(o, pc) < o->n)) return false;
  size_t n = direct_fetch(e, pc, bytes, sizeof bytes, phys);
  if (!n || direct_decode(e->level, &e->costs, bytes, n, pc, in) != DECODED) return false;
  // RAX and RCX never change places.
  uint32_t registers = o->registers | registers_of(in) | REGISTER_BIT(RAX) | REGISTER_BIT(RCX);
  bool pause = in->class == CLASS_PAUSE;
  if (pause && o->n && !o->block->pauses) return false;
  if (!(is_translated(e, in) || pause) || o->cost + in->cost > BLOCK_COST || __builtin_popcount(registers) > registers_most(e)) return false;
  if (!add_pages(o->block, pc, in->length, phys)) return false;
  if (pause) o->block->pauses = true;
  o->registers = registers;
  o->taken[o->n] = false;
  o->cost += in->cost;
  o->n++;
  o->next = in->class == CLASS_JUMP || in->class == CLASS_CALL ? in->target : pc + in->length;
  if (!o->is_short && closes_short_loop(o)) {
    o->unrolled = o->taken[o->n - 1] = true;
    o->next = in->target;
  } else if (o->unrolled && in->class == CLASS_JUMP_IF && find_insn(o, in->target) < o->n) {
    return false;  // as often as it fits in
  }
  bool branches = in->class == CLASS_JUMP_IF || in->class == CLASS_JUMP || in->class == CLASS_CALL;
  return !ends_block(in) && !(o->is_short && branches);
}

// An outline without instructions, whose arrays have nothing yet.
static void begin_outline(struct outline *o, struct direct_block *b, bool is_short) {
  memset(o, 0, offsetof(struct outline, insns));
  o->next = b->pc;
  o->block = b;
  o->registers = REGISTER_BIT(RSP);
  o->is_short = is_short;
}

// Registers that the block does not use, in the place of 10, 11 and the log's as far as it uses them.
static void choose_registers(struct direct_engine *e, struct direct_block *b, uint32_t used) {
  static const uint8_t candidates[] = {R13, R14, R12, R15, RBP, R9, R8, RBX, RDI, RSI, RDX};
  static const uint8_t own[] = {R10, R11, LOG_REGISTER};
  unsigned at = 0, n = log_has_register(&e->log) ? 3 : 2;
  uint32_t taken = used | (n == 3 ? REGISTER_BIT(LOG_REGISTER) : 0);
  b->swapped[2] = NO_REGISTER;
  for (unsigned k = 0; k < n; k++) {
    b->swapped[k] = NO_REGISTER;
    if (!(used & REGISTER_BIT(own[k]))) continue;
    while (taken & REGISTER_BIT(candidates[at])) at++;
    b->swapped[k] = candidates[at++];
  }
}

// Makes room in the region for a block.
static struct direct_region *make_room(struct direct_engine *e) {
  struct direct_blocks *a = e->blocks;
  struct direct_region *r = &a->regions[a->region];
  if (r->nblocks < REGION_BLOCKS && r->nexits + BLOCK_EXITS <= REGION_EXITS && r->npoints + 2 * BLOCK_INSNS <= REGION_POINTS &&
      r->nevents + BLOCK_INSNS <= REGION_EVENTS && r->nplaces + BLOCK_INSNS <= REGION_PLACES &&
      r->naccesses + BLOCK_ACCESSES <= REGION_ACCESSES && r->bytes + BLOCK_BYTES <= REGION_BYTES)
    return r;
  a->region = (a->region + 1) % REGIONS;
  empty_region(e, a->region);
  direct_check_units(e);
  return &a->regions[a->region];
}

// Memory is supplied in pieces of that many bytes at least, at most, and otherwise as much as there is.
#define SUPPLIED_LEAST ((size_t)64 << 10)
#define SUPPLIED_MOST ((size_t)256 << 10)

// Has the host supply memory for the next bytes after those in use.
static void supply(uint8_t *start, size_t *supplied, size_t used, size_t next, size_t all) {
  if (used + next <= *supplied) return;
  size_t n = *supplied < SUPPLIED_LEAST ? SUPPLIED_LEAST : *supplied < SUPPLIED_MOST ? *supplied : SUPPLIED_MOST;
  size_t end = *supplied + n < all ? *supplied + n : all;
  uint64_t from = page_of((uint64_t)(uintptr_t)start + *supplied);
  heddle_populate((void *)(uintptr_t)from, (uint64_t)(uintptr_t)start + end - from);
  *supplied = end;
}

// Has the host supply the memory of a block that is about to be made.
static void supply_region(struct direct_engine *e) {
  struct direct_blocks *a = e->blocks;
  const struct direct_region *r = &a->regions[a->region];
  struct direct_supplied *s = &a->supplied[a->region];
  supply(e->code.writable + UNIT_CODE_BYTES + a->region * REGION_BYTES, &s->code, r->bytes, BLOCK_BYTES / 8, REGION_BYTES);
  supply((uint8_t *)first_of(a, a->region), &s->blocks, r->nblocks * sizeof *a->all, sizeof *a->all, REGION_BLOCKS * sizeof *a->all);
  supply((uint8_t *)&a->exits[1 + a->region * REGION_EXITS], &s->exits, r->nexits * sizeof *a->exits, 4 * sizeof *a->exits,
         REGION_EXITS * sizeof *a->exits);
  supply((uint8_t *)&a->points[a->region * REGION_POINTS], &s->points, r->npoints * sizeof *a->points, 8 * sizeof *a->points,
         REGION_POINTS * sizeof *a->points);
}

static void enter_tables(struct direct_engine *e, struct direct_block *b) {
  struct direct_blocks *a = e->blocks;
  uint32_t i = direct_block_number(e, b), *slot = hash_slot(a, b->pc, b->phys[0]);
  b->next = *slot;
  *slot = i;
  for (unsigned k = 0; k < b->pages; k++) {
    b->next_in_page[k] = a->in_page[b->phys[k]];
    a->in_page[b->phys[k]] = i;
    uint32_t *at = at_slot(a, b->virt[k]);
    b->next_at[k] = *at;
    *at = at_number(e, b, k);
  }
  b->live = true;
}

// Reports whether a longer block can begin where this one does.
static bool branches_on(const struct outline *o) {
  const struct direct_insn *last = &o->insns[o->n - 1];
  return last->class == CLASS_JUMP_IF || last->class == CLASS_JUMP || last->class == CLASS_CALL;
}

// Has the block be of the loaded space alone.
static void own(struct direct_engine *e, struct direct_block *b) {
  b->shared = false;
  b->code = direct_code_number(e);
  b->space = e->space->number;
}

// The block at pc; one without instructions if the first is for C. NULL: there is no code. A block is
// short at first: most code is executed a few times only.
static struct direct_block *make(struct direct_engine *e, uint64_t pc, enum block_kind kind, bool is_short) {
  struct direct_blocks *a = e->blocks;
  struct direct_region *r = make_room(e);
  struct direct_block *b = first_of(a, a->region) + r->nblocks;
  supply_region(e);
  uint8_t bytes[15];
  uint32_t phys[2];
  memset(b, 0, sizeof *b);
  b->pc = pc;
  b->region = a->region;
  b->apart = kind == BLOCK_APART || a->apart[cache_slot(pc)] == pc;
  b->is_last = kind == BLOCK_LAST;
  struct outline o;
  begin_outline(&o, b, b->is_last || (is_short && !b->apart));
  while (o.n < BLOCK_INSNS && add_insn(e, &o)) continue;
  own(e, b);
  b->n = (uint8_t)o.n;
  b->cost = (uint16_t)o.cost;
  if (b->cost > a->cost_most) a->cost_most = b->cost;
  if (b->is_last && b->cost > a->last_cost_most) a->last_cost_most = b->cost;
  if (!o.n) {
    size_t n = direct_fetch(e, pc, bytes, sizeof bytes, phys);
    if (!n) return NULL;
    b->pages = 0;
    if (!add_pages(b, pc, n, phys)) b->pages = 1;
  } else {
    choose_registers(e, b, o.registers);
    b->is_short = o.is_short && !b->is_last && branches_on(&o);
    if (b->is_short) *direct_heat(e, b) = e->heat;
    b->start = e->code.writable + UNIT_CODE_BYTES + a->region * REGION_BYTES + r->bytes;
    b->first_exit = 1 + a->region * REGION_EXITS + r->nexits;
    b->first_point = a->region * REGION_POINTS + r->npoints;
    b->first_event = a->region * REGION_EVENTS + r->nevents;
    b->first_place = a->region * REGION_PLACES + r->nplaces;
    b->first_access = a->region * REGION_ACCESSES + r->naccesses;
    direct_translate(e, b, &o);
    if (log_is_raw(&e->log)) direct_log_block_code(e, b);
    r->bytes += (b->size + 15u) & ~15u;
    r->nexits += b->exits;
    r->npoints += b->points;
    r->nevents += b->events;
    r->naccesses += b->accesses;
    if (log_is_raw(&e->log)) r->nplaces += b->n;
    e->code_changed = true;
  }
  r->nblocks++;
  enter_tables(e, b);
  hold(e, b);
  return b;
}

// ---- finding -------------------------------------------------------------------------------------

// Reports whether the block's instructions are at its addresses in the loaded space.
static bool is_mapped(struct direct_engine *e, const struct direct_block *b) {
  uint64_t pte;
  for (unsigned k = 0; k < b->pages; k++) {
    if (!heddle_space_peek(e->space, b->virt[k], HEDDLE_FETCH, &pte)) return false;
    if (pte >> HEDDLE_PAGE_SHIFT != b->phys[k]) return false;
  }
  return true;
}

// Reports whether another address space that was run lately has blocks of this code number.
static bool is_in_use(const struct direct_engine *e, uint64_t code) {
  for (unsigned k = 0; k < BANKS; k++)
    if (&e->banks[k] != e->bank && e->banks[k].context && e->banks[k].code == code) return true;
  return false;
}

// Reports whether the loaded space has the block's code. If so, the block is used there from now on: it stays the space's own
// when mappings have changed, and is shared if it was another space's. While code is logged it is not shared, but taken
// over if no other space uses it.
static bool is_usable(struct direct_engine *e, struct direct_block *b) {
  bool logged = e->log.what & LOG_BRANCHES;
  if (direct_block_holds(e, b)) return true;
  if ((logged && is_in_use(e, b->code)) || !is_mapped(e, b)) return false;
  if (b->shared) return true;
  // What it is linked to may not be there, and what leads to it may be of another space.
  isolate(e, b);
  if (logged || b->space == e->space->number) own(e, b);
  else b->shared = true;
  if (b->n && log_is_raw(&e->log)) direct_log_block_code(e, b);
  return true;
}

static struct direct_block *find(struct direct_engine *e, uint64_t pc, enum block_kind kind) {
  struct direct_blocks *a = e->blocks;
  uint64_t pte;
  if (!heddle_space_peek(e->space, pc, HEDDLE_FETCH, &pte)) return NULL;
  uint32_t page = (uint32_t)(pte >> HEDDLE_PAGE_SHIFT);
  for (uint32_t i = *hash_slot(a, pc, page); i; i = a->all[i].next) {
    struct direct_block *b = &a->all[i];
    if (b->pc != pc || b->phys[0] != page || b->is_last != (kind == BLOCK_LAST) || (kind == BLOCK_APART && !b->apart)) continue;
    if (kind != BLOCK_APART && b->apart && a->apart[cache_slot(pc)] != pc) continue;
    if (!is_usable(e, b)) continue;
    hold(e, b);
    return b;
  }
  return NULL;
}

// Where the bank has its blocks of the kind.
static struct direct_block **known_blocks(const struct direct_bank *b, enum block_kind kind) {
  return kind == BLOCK_LAST ? b->last_blocks : b->blocks;
}

// The block at pc in the loaded space, made if need be.
struct direct_block *direct_block_find(struct direct_engine *e, uint64_t pc, enum block_kind kind) {
  direct_float_park(e);
  struct direct_block *b = find(e, pc, kind);
  if (!b) b = make(e, pc, kind, true);
  if (b && kind != BLOCK_APART) known_blocks(e->bank, kind)[cache_slot(pc)] = b;
  return b;
}

// Replaces the short block at pc by a long one.
struct direct_block *direct_block_lengthen(struct direct_engine *e, uint64_t pc) {
  direct_float_park(e);
  struct direct_block *b = find(e, pc, BLOCK_PLAIN);
  if (b && !b->is_short) return b;
  if (b) drop(e, b);
  b = make(e, pc, BLOCK_PLAIN, false);
  if (b) e->bank->blocks[cache_slot(pc)] = b;
  return b;
}
