// Code for blocks.
//
// The guest's registers are in the host's of the same name, but for 10 and 11, which are for the
// code itself. A block that uses one of these changes its place with that of a register which it
// does not use. Between blocks all are in their places, and the flags in memory (block.h).
#include "translate.h"

#include <string.h>

// ---- leaving -----------------------------------------------------------------------------

static void put_swap_in(struct translation *t) {
  unsigned other = t->block->swapped[2];
  for (unsigned k = 0; k < 2; k++) {
    unsigned with = t->block->swapped[k];
    if (with == NO_REGISTER) continue;
    put_store(&t->c, with, in_context(CONTEXT_GPR + 8 * with));
    put_load(&t->c, R10 + k, in_context(CONTEXT_GPR + 8 * (R10 + k)));
  }
  if (other == NO_REGISTER) return;
  put_store(&t->c, other, in_context(CONTEXT_GPR + 8 * other));
  put_move(&t->c, other, LOG_REGISTER);
  put_load(&t->c, LOG_REGISTER, in_context(CONTEXT_GPR + 8 * LOG_REGISTER));
}

static void put_log_swap_out(struct translation *t) {
  unsigned other = t->block->swapped[2];
  if (other == NO_REGISTER) return;
  put_store(&t->c, LOG_REGISTER, in_context(CONTEXT_GPR + 8 * LOG_REGISTER));
  put_move(&t->c, LOG_REGISTER, other);
  put_load(&t->c, other, in_context(CONTEXT_GPR + 8 * other));
}

static void put_swap_out(struct translation *t) {
  for (unsigned k = 0; k < 2; k++) {
    unsigned with = t->block->swapped[k];
    if (with == NO_REGISTER) continue;
    put_store(&t->c, R10 + k, in_context(CONTEXT_GPR + 8 * (R10 + k)));
    put_load(&t->c, with, in_context(CONTEXT_GPR + 8 * with));
  }
  put_log_swap_out(t);
}

static void put_leave(struct translation *t, uint32_t exit) {
  put_imm_to_memory(&t->c, 4, in_context(CONTEXT_EXIT), (int32_t)exit);
  put_jump_memory(&t->c, in_context(CONTEXT_LEAVE));
}

static uint32_t offset_here(const struct translation *t) { return (uint32_t)(t->c.at - t->block->start); }

static const uint8_t *shared_unknown(const struct direct_engine *e) { return e->code.writable; }

// Code that all blocks share: an indirect branch to where no block is known, its target in R11.
void direct_translate_shared(struct direct_engine *e) {
  struct code c = {e->code.writable};
  put_store(&c, R11, in_context(CONTEXT_RIP));
  put_imm_to_memory(&c, 4, in_context(CONTEXT_EXIT), (int32_t)EXIT_UNKNOWN);
  put_jump_memory(&c, in_context(CONTEXT_LEAVE));
}

// Takes the block's cost off the budget; the sign flag is set if it is used up.
static void put_charge(struct translation *t, const struct direct_exit *x, unsigned collected) {
  uint64_t count = log_collects(&t->e->log) ? (uint64_t)x->count << COLLECTED_BITS | collected : x->count;
  uint64_t all = (uint64_t)x->cost << direct_budget_shift(&t->e->log) | count;
  if (all <= INT32_MAX) {
    put_subtract_from_memory(&t->c, in_context(CONTEXT_BUDGET), (int32_t)all);
    return;
  }
  put_constant(&t->c, t->scratch, all);
  put_op_memory(&t->c, 8, OP_SUB_FROM_MEMORY, t->scratch, in_context(CONTEXT_BUDGET));
}

static struct direct_exit *new_exit(struct translation *t, unsigned i, uint64_t target) {
  struct direct_blocks *a = t->e->blocks;
  struct direct_exit *x = &a->exits[t->block->first_exit + t->block->exits++];
  const struct direct_insn *last = &t->insns[i];
  memset(x, 0, sizeof *x);
  x->target = target;
  x->block = direct_block_number(t->e, t->block);
  x->count = (uint16_t)(i + 1);
  x->cost = (uint16_t)(t->cost_before[i] + last->cost);
  x->boundary = last->kind != KIND_NONE || target != last->pc + last->length;
  return x;
}

static uint32_t exit_number(const struct translation *t, const struct direct_exit *x) {
  return (uint32_t)(x - t->e->blocks->exits);
}

static bool is_swapped(const struct direct_block *b) {
  return b->swapped[0] != NO_REGISTER || b->swapped[1] != NO_REGISTER || b->swapped[2] != NO_REGISTER;
}

// Goes to an address that is known, after instruction i.
static void put_exit(struct translation *t, unsigned i, uint64_t target) {
  struct direct_exit *x = new_exit(t, i, target);
  put_shift_flags(t);
  put_flags_aside(t);
  put_stores_exit(t, i);
  unsigned collected = put_collect(t, i, x);
  put_charge(t, x, collected);
  put_record(t, i, x);
  bool swapped = is_swapped(t->block), flags = stores_flags(t);
  struct direct_flags before = t->flags;
  if (flags) {
    x->flags = offset_here(t);
    put_flags(t);
    memcpy(x->flag_code, t->block->start + x->flags, sizeof x->flag_code);
  }
  uint8_t *goes_on = put_jump_if(&t->c, CC_NS);
  x->jump[!swapped] = offset_here(t) - 4;
  put_swap_out(t);
  x->start[1] = offset_here(t);
  put_leave(t, exit_number(t, x));
  if (swapped) {
    x->start[0] = offset_here(t);
    put_swap_out(t);
    x->jump[1] = offset_here(t) + 1;
    patch_jump(put_jump(&t->c), t->block->start + x->start[1]);
  }
  patch_jump(goes_on, t->block->start + x->start[!swapped]);
  if (!flags) return;
  x->flags_leave = offset_here(t);
  t->flags = before;
  put_flags(t);
  patch_jump(put_jump(&t->c), goes_on + 4);
}

// Goes to the address in the pointer register, after instruction i.
static void put_indirect_exit(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  struct direct_exit *x = new_exit(t, i, 0);
  struct code *c = &t->c;
  x->class = in->class;
  x->boundary = true;
  x->released = in->class == CLASS_RETURN ? (uint16_t)in->imm : 0;
  x->pc = in->pc;
  x->last_cost = (uint16_t)in->cost;
  put_exit_flags(t);
  put_stores_exit(t, i);
  unsigned collected = put_collect(t, i, x);
  put_charge(t, x, collected);
  put_record(t, i, x);
  put_log_swap_out(t);
  const uint8_t *swapped = t->block->swapped;
  if (swapped[0] != NO_REGISTER) {
    put_store(c, R10, in_context(CONTEXT_GPR + 8 * R10));
    put_load(c, swapped[0], in_context(CONTEXT_GPR + 8 * swapped[0]));
  }
  if (swapped[1] != NO_REGISTER) {
    put_store(c, R11, in_context(CONTEXT_GPR + 8 * R11));
    put_move(c, R11, swapped[1]);
    put_load(c, swapped[1], in_context(CONTEXT_GPR + 8 * swapped[1]));
  }
  put_imm_to_memory(c, 4, in_context(CONTEXT_BRANCH), (int32_t)exit_number(t, x));
  if (t->block->is_last) {  // C grants what the next one may use
    patch_jump(put_jump(c), shared_unknown(t->e));
    return;
  }
  patch_jump(put_jump_if(c, CC_S), shared_unknown(t->e));
  put_zero_extend16(c, R10, R11);
  put_load(c, R10, in_table(BANK_TARGETS, R10));
  put_op_register(c, 8, OP_TEST, R10, R10);
  patch_jump(put_jump_if(c, CC_Z), shared_unknown(t->e));
  put_jump_register(c, R10);
}

// ---- accesses --------------------------------------------------------------------------------

static struct direct_point *new_point(struct translation *t, unsigned i) {
  struct direct_block *b = t->block;
  struct direct_point *p = &t->e->blocks->points[b->first_point + b->points++];
  const struct direct_insn *before = i ? &t->insns[i - 1] : NULL;
  memset(p, 0, sizeof *p);
  p->pc = t->insns[i].pc;
  p->block = direct_block_number(t->e, b);
  p->at = (uint16_t)offset_here(t);
  p->cost = t->cost_before[i];
  p->count = (uint8_t)i;
  p->stores = t->stores_before[i];
  p->events = t->recorded_before[i].events;
  p->branches = t->recorded_before[i].branches;
  p->accesses = t->recorded_before[i].accesses;
  p->boundary = !before || before->kind != KIND_NONE || before->pc + before->length != p->pc;
  p->flags = t->flags;
  return p;
}

static struct direct_point *new_check(struct translation *t, unsigned i, unsigned size, bool write) {
  put_flags_aside(t);
  struct direct_point *p = new_point(t, i);
  p->size = p->own_size = (uint16_t)size;
  p->write = write;
  t->group.valid = false;
  return p;
}

// A check that fails goes to C, later, with the address in the pointer register.
static void add_miss(struct translation *t, uint8_t *jump, const struct direct_point *p, struct place page, bool constant,
                     uint64_t address) {
  t->misses[t->nmisses++] = (struct miss){jump, (uint32_t)(p - t->e->blocks->points), page, constant, address};
}

static void put_misses(struct translation *t) {
  for (unsigned i = 0; i < t->nmisses; i++) {
    struct miss *m = &t->misses[i];
    patch_jump(m->jump, t->c.at);
    if (m->constant) put_constant(&t->c, t->pointer, m->address);
    else put_op_memory(&t->c, 8, OP_XOR, t->pointer, m->page);
    put_imm_to_memory(&t->c, 4, in_context(CONTEXT_EXIT), (int32_t)m->point);
    put_jump_memory(&t->c, in_context(CONTEXT_MISS));
  }
}

static struct place pages_table(bool write, unsigned index) {
  return in_table(write ? BANK_WRITE_PAGES : BANK_READ_PAGES, index);
}

static struct place bytes_table(bool write, unsigned index) {
  return in_table(write ? BANK_WRITE_BYTES : BANK_READ_BYTES, index);
}

// Makes the guest's address in the pointer register the host's.
static void put_translation(struct translation *t, struct direct_point *p, unsigned size, bool write, bool stack) {
  struct code *c = &t->c;
  struct place page = pages_table(write, t->scratch), bytes = bytes_table(write, t->scratch);
  p->stack = stack;
  if (stack) {
    page = in_context(write ? CONTEXT_STACK_WRITE : CONTEXT_STACK_READ);
    bytes = page;
    bytes.disp += 8;
  } else {
    put_op_register(c, 4, OP_LOAD, t->scratch, t->pointer);
    put_shift_right(c, 4, t->scratch, HEDDLE_PAGE_SHIFT);
  }
  // The offset, unless the page is another.
  put_op_memory(c, 8, OP_XOR, t->pointer, page);
  put_op_imm(c, 8, 7, t->pointer, (int32_t)(HEDDLE_PAGE_SIZE - size));
  add_miss(t, put_jump_if(c, CC_NBE), p, page, false, 0);
  put_op_memory(c, 8, OP_ADD, t->pointer, bytes);
  p->after = (uint16_t)offset_here(t);
}

// An operand at an address that is known.
static struct place put_constant_access(struct translation *t, struct direct_point *p, uint64_t va, bool write) {
  struct code *c = &t->c;
  uint32_t at = ((uint32_t)va >> HEDDLE_PAGE_SHIFT) * 8;
  struct place page = pages_table(write, NO_REGISTER), bytes = bytes_table(write, NO_REGISTER);
  page.disp += (int32_t)at;
  bytes.disp += (int32_t)at;
  put_constant(c, t->pointer, page_of(va));
  put_op_memory(c, 8, OP_CMP, t->pointer, page);
  add_miss(t, put_jump_if(c, CC_NZ), p, page, true, va);
  put_load(c, t->pointer, bytes);
  return at_register(t->pointer, (int32_t)offset_of(va));
}

// Checks an access at a distance from a register, with those after it that may share the check,
// unless one before has covered it.
static struct place put_group_access(struct translation *t, unsigned i, unsigned base, int32_t at, unsigned size, bool write) {
  struct group *g = &t->group;
  bool covered = g->valid && g->base == base && at >= g->low && at + (int64_t)size <= g->high && (g->write || !write);
  if (covered) {
    t->where = (struct where){g->word, (uint64_t)(int64_t)(at - g->low)};
    return at_register(t->pointer, at - g->low);
  }
  struct direct_point *p = new_check(t, i, size, write);
  *g = (struct group){.valid = true, .write = write, .base = (uint8_t)base, .low = at, .high = at + (int32_t)size};
  extend_group(t, i, g);
  p->size = (uint16_t)(g->high - g->low);
  p->own = (uint16_t)(at - g->low);
  if (g->low) put_op_memory(&t->c, 8, OP_LEA, t->pointer, at_register(base, g->low));
  else put_move(&t->c, t->pointer, base);
  g->word = put_address_word(t);
  t->where = (struct where){g->word, (uint64_t)(int64_t)(at - g->low)};
  put_translation(t, p, p->size, write, base == RSP);
  return at_register(t->pointer, at - g->low);
}

// Computes the guest's address of an operand into the pointer register.
static void put_operand_address(struct translation *t, const struct direct_operand *m) {
  bool constant = m->base == NO_REGISTER && m->index == NO_REGISTER;
  struct place at = {.base = m->base, .index = m->index, .scale = m->scale, .disp = (int32_t)m->disp};
  if ((constant && !m->segment) || m->disp != (int32_t)m->disp)
    put_constant(&t->c, t->pointer, m->narrow ? (uint32_t)m->disp : (uint64_t)m->disp);
  else put_op_memory(&t->c, m->narrow ? 4 : 8, OP_LEA, t->pointer, at);
  if (m->segment) put_op_memory(&t->c, 8, OP_ADD, t->pointer, in_context(m->segment == SEGMENT_FS ? CONTEXT_FS_BASE : CONTEXT_GS_BASE));
}

// Checks the instruction's operand in memory. The result is where the host has it.
static struct place put_access(struct translation *t, unsigned i, unsigned size, bool write) {
  const struct direct_operand *m = &t->insns[i].memory;
  bool plain = m->base != NO_REGISTER && m->index == NO_REGISTER && !m->segment && !m->narrow;
  if (plain && m->disp < INT32_MAX - 64 && m->disp >= INT32_MIN) return put_group_access(t, i, m->base, (int32_t)m->disp, size, write);
  struct direct_point *p = new_check(t, i, size, write);
  uint64_t va = m->narrow ? (uint32_t)m->disp : (uint64_t)m->disp;
  bool constant = m->base == NO_REGISTER && m->index == NO_REGISTER && !m->segment;
  if (constant && is_canonical(va) && offset_of(va) + size <= HEDDLE_PAGE_SIZE) {
    t->where = (struct where){0, va};
    return put_constant_access(t, p, va, write);
  }
  put_operand_address(t, m);
  t->where = (struct where){put_address_word(t), 0};
  put_translation(t, p, size, write, false);
  return at_register(t->pointer, 0);
}

static void put_add_to_stack(struct translation *t, int32_t n) {
  put_op_memory(&t->c, 8, OP_LEA, RSP, at_register(RSP, n));
}

// Has the host prefetch what the guest's instruction names, if its page is in the table. Without that, code
// that prefetches waits for memory at each access.
static void put_prefetch(struct translation *t, const struct direct_insn *in) {
  struct code *c = &t->c;
  put_flags_aside(t);
  t->group.valid = false;
  put_operand_address(t, &in->memory);
  put_op_register(c, 4, OP_LOAD, t->scratch, t->pointer);
  put_shift_right(c, 4, t->scratch, HEDDLE_PAGE_SHIFT);
  put_op_memory(c, 8, OP_XOR, t->pointer, pages_table(false, t->scratch));
  put_op_imm(c, 8, 7, t->pointer, HEDDLE_PAGE_SIZE - 1);
  uint8_t *absent = put_jump_if(c, CC_NBE);
  put_op_memory(c, 8, OP_ADD, t->pointer, bytes_table(false, t->scratch));
  put_insn(c, in, at_register(t->pointer, 0), -1);
  patch_jump(absent, c->at);
}

// ---- instructions -------------------------------------------------------------------------------

static void put_address(struct translation *t, const struct direct_insn *in) {
  const struct direct_operand *m = &in->memory;
  if (m->base == NO_REGISTER && m->index == NO_REGISTER) {
    uint64_t value = (uint64_t)m->disp;
    if (m->narrow || in->width == 4) value = (uint32_t)value;
    put_constant(&t->c, t->scratch, value);
    put_op_register(&t->c, in->width == 2 ? 2 : 8, OP_LOAD, insn_reg(in), t->scratch);
    return;
  }
  struct place p = {.base = m->base, .index = m->index, .scale = m->scale, .disp = (int32_t)m->disp};
  put_insn(&t->c, in, p, -1);
}

static bool scans_bits(const struct direct_insn *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_BSF || in->mnemonic == ZYDIS_MNEMONIC_BSR;
}

static bool can_trap(const struct direct_insn *in) {
  return (in->what & (INSN_FLOAT | INSN_ALIGNED)) || in->mnemonic == ZYDIS_MNEMONIC_DIV || in->mnemonic == ZYDIS_MNEMONIC_IDIV;
}

static void put_native(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  bool memory = in->what & INSN_MEMORY;
  unsigned points = t->block->points;
  struct place m = at_register(RAX, 0);
  if (memory) {
    m = put_access(t, i, in->size, in->what & INSN_STORES);
    put_log_before(t, i, m);
  }
  if (in->what & INSN_STORES) put_stored(t, i, m, in->size);
  put_flags_before(t, i);
  if (points == t->block->points && can_trap(in)) new_point(t, i);
  if (scans_bits(in)) put_move(&t->c, t->scratch, insn_reg(in));
  if (in->what & INSN_ADDRESS) put_address(t, in);
  else put_insn(&t->c, in, m, -1);
  // Of zero, processors leave different things in the destination.
  if (scans_bits(in)) put_move_if(&t->c, CC_Z, insn_reg(in), t->scratch);
  if (memory) put_log_after(t, i, m);
  put_flags_after(t, i, m);
}

static void put_push(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  struct place top = put_group_access(t, i, RSP, -8, 8, true);
  put_stored(t, i, top, 8);
  put_flags_before(t, i);
  bool constant = !in->has_modrm && !(in->opcode >= 0x50 && in->opcode < 0x58);
  if (constant) {
    put_imm_to_memory(&t->c, 8, top, (int32_t)in->imm);
    log_constant_store(t, i, in->imm);
  } else {
    put_store(&t->c, direct_stack_register(in), top);
    put_log_register(t, i, direct_stack_register(in), true);
  }
  put_add_to_stack(t, -8);
}

static void put_pop(struct translation *t, unsigned i) {
  unsigned r = direct_stack_register(&t->insns[i]);
  struct place top = put_group_access(t, i, RSP, 0, 8, false);
  put_flags_before(t, i);
  put_load(&t->c, r, top);
  put_log_register(t, i, r, false);
  put_add_to_stack(t, 8);
}

static void put_leave_frame(struct translation *t, unsigned i) {
  struct place top = put_group_access(t, i, RBP, 0, 8, false);
  put_flags_before(t, i);
  put_load(&t->c, t->scratch, top);
  put_log_register(t, i, t->scratch, false);
  put_op_memory(&t->c, 8, OP_LEA, RSP, at_register(RBP, 8));
  put_move(&t->c, RBP, t->scratch);
}

// Pushes the address of the instruction after a call.
static void put_push_return(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  uint64_t next = in->pc + in->length;
  struct place top = put_group_access(t, i, RSP, -8, 8, true);
  put_stored(t, i, top, 8);
  put_flags_before(t, i);
  log_constant_store(t, i, (int64_t)next);
  if ((int64_t)next == (int32_t)next) {
    put_imm_to_memory(&t->c, 8, top, (int32_t)next);
  } else {
    put_constant(&t->c, t->scratch, next);
    put_store(&t->c, t->scratch, top);
  }
  put_add_to_stack(t, -8);
}

// Loads the target of an indirect branch into the pointer register.
static void put_target(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  if (insn_is_register(in)) {
    put_move(&t->c, t->pointer, insn_rm(in));
  } else {
    put_load(&t->c, t->pointer, put_access(t, i, 8, false));
    put_log_register(t, i, t->pointer, false);
  }
}

static void put_call_to(struct translation *t, unsigned i) {
  struct code *c = &t->c;
  put_target(t, i);
  put_store(c, t->pointer, in_context(CONTEXT_SPARE));
  // An address that is not canonical is an exception of the call.
  struct direct_point *p = new_check(t, i, 0, false);
  put_move(c, t->scratch, t->pointer);
  put_shift(c, 8, 4, t->scratch, 16);
  put_shift(c, 8, 7, t->scratch, 16);
  put_op_register(c, 8, OP_CMP, t->scratch, t->pointer);
  add_miss(t, put_jump_if(c, CC_NZ), p, at_register(RAX, 0), true, 0);
  put_push_return(t, i);
  put_load(c, t->pointer, in_context(CONTEXT_SPARE));
  put_indirect_exit(t, i);
}

static void put_return(struct translation *t, unsigned i) {
  struct place top = put_group_access(t, i, RSP, 0, 8, false);
  put_flags_before(t, i);
  put_load(&t->c, t->pointer, top);
  put_log_register(t, i, t->pointer, false);
  put_add_to_stack(t, 8 + (uint16_t)t->insns[i].imm);
  put_indirect_exit(t, i);
}

static void put_branch(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  put_flags_before(t, i);
  struct branch *b = &t->branches[t->nbranches++];
  unsigned leaves_if = (in->opcode & 15u) ^ t->taken[i];
  *b = (struct branch){put_jump_if(&t->c, leaves_if), i, t->flags, t->in_host};
  if (leaves_if == CC_Z) note_equal(&b->flags);
  if (leaves_if == CC_NZ) note_equal(&t->flags);
}

static void put_branches(struct translation *t) {
  for (unsigned k = 0; k < t->nbranches; k++) {
    struct branch *b = &t->branches[k];
    patch_jump(b->jump, t->c.at);
    t->flags = b->flags;
    t->in_host = b->in_host;
    const struct direct_insn *in = &t->insns[b->insn];
    put_exit(t, b->insn, t->taken[b->insn] ? in->pc + in->length : in->target);
  }
}

// Reports whether the block continues after the instruction.
static bool put_instruction(struct translation *t, unsigned i) {
  switch ((enum direct_class)t->insns[i].class) {
    case CLASS_NATIVE:
      put_native(t, i);
      return true;
    case CLASS_PREFETCH:
      put_prefetch(t, &t->insns[i]);
      return true;
    case CLASS_JUMP_IF:
      put_branch(t, i);
      return true;
    case CLASS_PUSH:
      put_push(t, i);
      return true;
    case CLASS_POP:
      put_pop(t, i);
      return true;
    case CLASS_LEAVE:
      put_leave_frame(t, i);
      return true;
    case CLASS_CALL:
      put_push_return(t, i);
      return true;
    case CLASS_CALL_TO:
      put_call_to(t, i);
      return false;
    case CLASS_JUMP_TO:
      put_target(t, i);
      put_indirect_exit(t, i);
      return false;
    case CLASS_RETURN:
      put_return(t, i);
      return false;
    default:
      return true;
  }
}

// ---- blocks ----------------------------------------------------------------------------------------

static void put_entry(struct translation *t) {
  struct direct_block *b = t->block;
  struct code *c = &t->c;
  b->checked = offset_here(t);
  put_constant(c, R10, b->pc);
  put_op_register(c, 8, OP_CMP, R11, R10);
  patch_jump(put_jump_if(c, CC_NZ), shared_unknown(t->e));
  b->entry = offset_here(t);
  b->needs_flags = flags_are_needed(t);
  b->ignores_flags = flags_are_ignored(t);
  if (b->needs_flags) {
    put_compare_memory(c, 4, in_context(CONTEXT_FORMULA), 0);
    t->needs_flags = put_jump_if(c, CC_NZ);
    t->flags_ready = offset_here(t);
  }
  put_swap_in(t);
  b->inner = offset_here(t);
  if (!b->is_short) return;
  const struct direct_memory *m = &t->e->code;
  put_decrement16(c, (const uint8_t *)direct_heat(t->e, b) - m->executable + m->writable);
  t->hot = put_jump_if(c, CC_Z);
}

static void put_hot(struct translation *t) {
  struct code *c = &t->c;
  if (!t->block->is_short) return;
  patch_jump(t->hot, c->at);
  put_swap_out(t);
  put_constant(c, R11, t->block->pc);
  put_store(c, R11, in_context(CONTEXT_RIP));
  put_leave(t, EXIT_HOT);
}

// The flags are computed by direct_settle (settle.S).
static void put_needs_flags(struct translation *t) {
  struct code *c = &t->c;
  if (!t->block->needs_flags) return;
  patch_jump(t->needs_flags, c->at);
  put_constant(c, R11, (uint64_t)(uintptr_t)direct_block_code(t->e, t->block, t->flags_ready));
  put_jump_memory(c, in_context(CONTEXT_SETTLE));
}

void direct_translate(struct direct_engine *e, struct direct_block *b, const struct outline *o) {
  struct translation t;
  memset(&t, 0, offsetof(struct translation, cost_before));
  t.e = e;
  t.block = b;
  t.insns = o->insns;
  t.taken = o->taken;
  t.n = o->n;
  t.c.at = b->start;
  t.scratch = b->swapped[0] != NO_REGISTER ? b->swapped[0] : R10;
  t.pointer = b->swapped[1] != NO_REGISTER ? b->swapped[1] : R11;
  t.flags.formula = FORMULA_ENTRY;
  for (unsigned i = 0, cost = 0; i < o->n; cost += o->insns[i++].cost) t.cost_before[i] = (uint16_t)cost;
  count_stores(&t);
  t.log = b->swapped[2] != NO_REGISTER ? b->swapped[2] : LOG_REGISTER;
  begin_record(&t);
  put_entry(&t);
  bool open = true;
  for (unsigned i = 0; i < o->n; i++) {
    record_before(&t, i);
    open = put_instruction(&t, i);
    move_group(&t, i);
    record_after(&t, i);
  }
  if (open) put_exit(&t, o->n - 1, o->next);
  put_branches(&t);
  put_other_return(&t);
  put_misses(&t);
  put_needs_flags(&t);
  put_hot(&t);
  b->size = offset_here(&t);
}
