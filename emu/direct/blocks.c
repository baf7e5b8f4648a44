// Running blocks.
//
// The budget that translated code is granted is one word: cycles in its upper bits, which end
// it, and instructions in the lower, which are counted. An instruction costs a cycle at least, so
// that there are enough of both. A block takes its cost off when it is left, and goes back to C if
// nothing remains. Granted is less than what is left by the cost of one block, so that none runs
// beyond the end.
#include "general.h"

#include "block.h"

#define GRANT_MOST ((int64_t)1 << 19)

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The number of instructions that may run before a reason to stop has to be looked for.
int64_t direct_free_instructions(const struct direct_engine *e) {
  int64_t now = (int64_t)direct_instructions_now(e);
  int64_t n = least(e->instructions_left, e->most - now);
  if (e->halt_at && (int64_t)e->halt_at >= now) n = least(n, (int64_t)e->halt_at - now);
  if (e->poll_interval) n = least(n, (int64_t)e->poll_at - now);
  return n;
}

static void grant(struct direct_engine *e, int64_t cycles) {
  unsigned shift = direct_budget_shift(&e->log);
  e->context->budget = (int64_t)((uint64_t)cycles << shift | (((uint64_t)1 << shift) - 1));
}

// Instructions of the grant that have been used.
static int64_t used_instructions(const struct direct_engine *e) {
  int64_t start = ((int64_t)1 << direct_budget_shift(&e->log)) - 1, used = start - (e->context->budget & start);
  return log_collects(&e->log) ? used >> COLLECTED_BITS : used;
}

// Takes what was used of the grant off what is left.
static void settle(struct direct_engine *e, int64_t granted) {
  int64_t used = used_instructions(e);
  e->instructions_left -= used;
  e->cycles_left -= granted - (e->context->budget >> direct_budget_shift(&e->log));
  if (used) e->passed = false;
}

// Counts those instructions of a block that are before a point.
static void charge_part(struct direct_engine *e, const struct direct_point *p) {
  e->instructions_left -= p->count;
  e->cycles_left -= p->cost;
  if (p->count) e->passed = false;
}

// ---- the state at a point ---------------------------------------------------------------

// Makes the context's registers those of the guest, from the host's in a block's code.
static void take_registers(struct direct_engine *e, const struct direct_block *b) {
  struct direct_context *c = e->context;
  const uint8_t *swapped = b->swapped;
  uint32_t elsewhere = REGISTER_BIT(swapped[0]) | REGISTER_BIT(swapped[1]) | REGISTER_BIT(swapped[2]);
  if (swapped[0] == NO_REGISTER) elsewhere |= REGISTER_BIT(R10);
  if (swapped[1] == NO_REGISTER) elsewhere |= REGISTER_BIT(R11);
  if (swapped[2] == NO_REGISTER && log_has_register(&e->log)) elsewhere |= REGISTER_BIT(LOG_REGISTER);
  for (unsigned r = 0; r < 16; r++)
    if (!(elsewhere & REGISTER_BIT(r))) c->gpr[r] = c->host_gpr[r];
}

static uint64_t operand_value(const struct direct_engine *e, unsigned where, uint64_t kept, int32_t constant) {
  if (where == OPERAND_KEPT) return kept;
  return where == OPERAND_CONSTANT ? (uint64_t)(int64_t)constant : e->context->gpr[where];
}

static void take_flags(struct direct_engine *e, const struct direct_flags *f) {
  struct direct_context *c = e->context;
  uint64_t count = f->shift ? operand_value(e, f->count, c->count, 0) & direct_count_mask(f->shift_width) : 0;
  if (count) {
    set_flags_of(c, direct_formula_flags(f->shift, f->shift_width, c->shifted, count));
    return;
  }
  switch (f->formula) {
    case FORMULA_ENTRY:
      direct_settle_flags(e);
      return;
    case FORMULA_SAVED:
      c->flags = c->saved_flags;
      return;
    case FORMULA_HOST:
      set_flags_of(c, e->host_flags & ~(uint64_t)f->undefined);
      return;
    default:
      set_flags_of(c, direct_formula_flags(f->formula, f->width, operand_value(e, f->first, c->first, f->constant),
                                           operand_value(e, f->second, c->second, f->constant)));
  }
}

// The end of the raw log while a block has been left before an instruction.
static const uint64_t *log_end(const struct direct_engine *e, const struct direct_point *p) {
  const struct direct_block *b = &e->blocks->all[p->block];
  if (log_collects(&e->log)) return e->context->log;
  return (const uint64_t *)(uintptr_t)e->context->host_gpr[b->swapped[2] != NO_REGISTER ? b->swapped[2] : LOG_REGISTER];
}

// Leaves the block before the instruction of the point.
static void leave_at(struct direct_engine *e, const struct direct_point *p) {
  if (e->log.what) {
    const uint64_t *end = log_end(e, p);
    if (log_is_raw(&e->log)) direct_log_drain(e, end);
    direct_log_part(e, p, end);
  }
  if (e->buffers) direct_buffer_logged(e, e->context->stores + p->stores);
  take_registers(e, &e->blocks->all[p->block]);
  take_flags(e, &p->flags);
  charge_part(e, p);
  // Where nothing has been executed since C entered a block, C knows better.
  if (p->count || used_instructions(e)) e->boundary = p->boundary;
  e->context->rip = p->pc;
}

// ---- misses ------------------------------------------------------------------------------

// Puts the page of an access into the tables. False: the instruction is to be executed on its own,
// because it faults, its operand lies in two pages, or it changes code.
static bool supply_page(struct direct_engine *e, const struct direct_point *p, uint64_t va) {
  struct direct_context *c = e->context;
  if (!p->size || !is_canonical(va)) return false;
  if (offset_of(va) + p->size > HEDDLE_PAGE_SIZE) return false;
  // The addresses of logged stores are those by which pages are in the tables now.
  if (e->buffers) direct_buffer_logged(e, c->stores + p->stores);
  const uint8_t *at = direct_locate(e, va, p->write ? HEDDLE_WRITE : HEDDLE_READ);
  if (!at || !direct_has_page(e, va, p->write)) return false;
  if (p->stack) {
    uint64_t *stack = p->write ? c->stack_write : c->stack_read;
    stack[0] = page_of(va);
    stack[1] = (uint64_t)(uintptr_t)(at - offset_of(va));
  }
  return true;
}

// Where a block finds the bytes of a load that lie in two pages: a copy with the same alignment. NULL: the instruction is
// to be executed on its own, because it stores or logs, or the tables lack one of the pages.
static uint8_t *copy_operand(struct direct_engine *e, const struct direct_point *p, uint64_t va) {
  size_t first = HEDDLE_PAGE_SIZE - offset_of(va);
  uint8_t *copy = e->context->bounce + va % 64;
  if (p->write || !p->after || p->own_size != p->size || first >= p->size || (e->log.what & LOG_UNITS)) return NULL;
  if (!is_canonical(va) || !is_canonical(va + p->size)) return NULL;
  if (!direct_has_page(e, va, false) || !direct_has_page(e, va + first, false)) return NULL;
  copy_bytes(copy, direct_locate(e, va, HEDDLE_READ), first);
  copy_bytes(copy + first, direct_locate(e, va + first, HEDDLE_READ), p->size - first);
  return copy;
}
_Static_assert(63 + 64 <= sizeof ((struct direct_context *)0)->bounce, "copy_operand");

static const struct direct_point *point_of_trap(const struct direct_engine *e) {
  const struct direct_blocks *a = e->blocks;
  size_t at = e->host_fault - (uint64_t)(uintptr_t)e->code.executable;
  unsigned region = (unsigned)((at - UNIT_CODE_BYTES) / REGION_BYTES);
  const uint8_t *writable = e->code.writable + at;
  // The region's points are in the order of its code.
  const struct direct_point *first = &a->points[region * REGION_POINTS];
  size_t low = 0, high = a->regions[region].npoints;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (a->all[first[middle].block].start + first[middle].at <= writable) low = middle;
    else high = middle;
  }
  return &first[low];
}

// Reports whether a check has failed only because it is of other accesses, too, which lie in the next
// page.
static bool crosses(const struct direct_point *p, uint64_t va) {
  return p->own_size < p->size && is_canonical(va) && offset_of(va) + p->size > HEDDLE_PAGE_SIZE &&
         offset_of(va + p->own) + p->own_size <= HEDDLE_PAGE_SIZE;
}

// A check of several accesses of the block has failed because of another access than the one to be
// made. The block is made anew with a check for each if that happens at nearly every turn.
static void note_crossing(struct direct_engine *e, struct direct_block *b) {
  uint64_t now = direct_instructions_now(e) + (uint64_t)used_instructions(e);
  bool soon = now - b->last_crossing < CROSSING_INSNS;
  b->crossings = soon ? (uint8_t)(b->crossings + 1) : 0;
  b->last_crossing = now;
  if (b->crossings < CROSSINGS_MOST) return;
  direct_float_park(e);
  direct_block_check_apart(e, b);
}

// The block from the point of the last crossing on that checks each access.
static struct direct_block *block_apart(struct direct_engine *e) {
  struct direct_point *p = e->crossed;
  struct direct_block *b = &e->blocks->all[p->apart];
  if (p->apart && b->live && b->apart && b->pc == p->pc && direct_block_holds(e, b)) return b;
  b = direct_block_find(e, p->pc, BLOCK_APART);
  // Making it may have taken the place of the point.
  if (b && e->crossed == p && p->pc == b->pc) p->apart = direct_block_number(e, b);
  return b;
}

enum run { RUN_LEFT, RUN_FAULT, RUN_MISS, RUN_TRAP };

// How to continue: with the block that was branched to, with an instruction of its own, or with a
// block that checks each access.
enum next { NEXT_BLOCK, NEXT_UNIT, NEXT_APART };

static void prepare_entry(struct direct_engine *e) {
  e->failed_returns = 0;
  direct_float_load(e);
  if (!e->code_changed) return;
  e->code_changed = false;
  direct_serialize();
}

// Runs from the block on until C is needed for more than a page of the tables.
static enum next run_from(struct direct_engine *e, const struct direct_block *b) {
  struct direct_context *c = e->context;
  c->saved_flags = c->flags;
  c->formula = FORMULA_SAVED;
  c->stores = e->stores.taken = e->stores.all;
  c->target = direct_block_code(e, b, b->entry);
  prepare_entry(e);
  enum run how = (enum run)(log_has_register(&e->log) ? direct_enter_logged() : direct_enter());
  while (how == RUN_MISS) {
    struct direct_point *p = &e->blocks->points[(uint32_t)c->exit];
    const struct direct_block *in = &e->blocks->all[p->block];
    uint64_t *pointer = &c->host_gpr[in->swapped[1] != NO_REGISTER ? in->swapped[1] : R11], va = *pointer;
    uint8_t *copy = copy_operand(e, p, va);
    if (copy) {
      *pointer = (uint64_t)(uintptr_t)copy;
      c->target = direct_block_code(e, in, p->after);
      prepare_entry(e);
      how = (enum run)direct_return_miss();
      continue;
    }
    if (crosses(p, va)) {
      leave_at(e, p);
      e->crossed = p;
      note_crossing(e, &e->blocks->all[p->block]);
      return NEXT_APART;
    }
    if (e->log.what & LOG_MEMORY) {
      e->log.point = p;
      e->log.record = log_end(e, p);
    }
    bool supplied = supply_page(e, p, va);
    e->log.point = NULL;
    if (!supplied) {
      leave_at(e, p);
      return NEXT_UNIT;
    }
    c->target = direct_block_code(e, in, p->at);
    prepare_entry(e);
    how = (enum run)direct_return_miss();
  }
  if (how == RUN_LEFT) {
    if (e->log.what) direct_log_drain(e, c->log);
    if (e->buffers) direct_buffer_logged(e, c->stores);
    direct_settle_flags(e);
    return NEXT_BLOCK;
  }
  leave_at(e, point_of_trap(e));
  return NEXT_UNIT;
}

// ---- exits -----------------------------------------------------------------------------------

// The target of an indirect branch is not canonical, which is an exception of the branch: goes back to
// before it. A call finds that out in time.
static void undo_branch(struct direct_engine *e) {
  struct direct_context *c = e->context;
  const struct direct_exit *x = &e->blocks->exits[(uint32_t)c->branch];
  if (x->class == CLASS_RETURN) c->gpr[RSP] -= 8u + x->released;
  c->rip = x->pc;
  e->instructions_left++;
  e->cycles_left += x->last_cost;
  e->boundary = false;
}

// Goes where the block has branched to. False: the branch is to be executed on its own.
static bool follow_exit(struct direct_engine *e) {
  struct direct_context *c = e->context;
  uint32_t number = (uint32_t)c->exit;
  if (number == EXIT_HOT) {
    e->boundary = false;  // it is unknown, and nothing was used up
    return true;
  }
  if (number == EXIT_UNKNOWN) {
    e->boundary = true;
    if (is_canonical(c->rip)) return true;
    undo_branch(e);
    return false;
  }
  const struct direct_exit *x = &e->blocks->exits[number];
  c->rip = x->target;
  e->boundary = x->boundary;
  return true;
}

static struct direct_block *block_at(struct direct_engine *e, uint64_t pc, enum block_kind kind) {
  struct direct_block *b = (kind == BLOCK_LAST ? e->bank->last_blocks : e->bank->blocks)[cache_slot(pc)];
  return b && b->pc == pc ? b : direct_block_find(e, pc, kind);
}

// Has the exit that was taken go to the block without C the next time.
static void connect(struct direct_engine *e, struct direct_block *b) {
  uint32_t number = (uint32_t)e->context->exit;
  if (number == EXIT_HOT) return;
  if (number == EXIT_UNKNOWN) {
    if (b->pauses || b->is_last) return;
    direct_float_park(e);
    direct_block_target(e, b);
    return;
  }
  struct direct_exit *x = &e->blocks->exits[number];
  const struct direct_block *from = &e->blocks->all[x->block];
  bool holds = from->shared || from->code == direct_code_number(e);
  if (x->linked || !from->live || !holds || from->is_last != b->is_last || (b->pauses && !from->pauses)) return;
  direct_float_park(e);
  direct_block_link(e, x, b);
}

// The instructions that can be executed before a PAUSE ends the run. A block that begins with PAUSE is reached through C,
// which grants it no more than these, or from another one.
static int64_t before_pause(const struct direct_engine *e) {
  if (!(e->run_flags & RUN_PAUSE)) return INT64_MAX;
  uint64_t next = direct_instructions_now(e) + 1;
  return e->pause_from <= next ? 0 : e->pause_from - next < INT64_MAX ? (int64_t)(e->pause_from - next) : INT64_MAX;
}

// The instructions or cycles up to where the run ends at the next branch, if blocks of the kind BLOCK_LAST may go beyond
// that, and other blocks may not be granted any cycles. NOT_LAST: otherwise.
#define NOT_LAST INT64_MAX
static int64_t last_budget(const struct direct_engine *e) {
  int64_t now = (int64_t)direct_instructions_now(e), soft = least(e->instructions_left, e->cycles_left), hard = e->most - now;
  if (e->poll_interval) soft = least(soft, (int64_t)e->poll_at - now);
  if (soft > e->blocks->cost_most || (e->run_flags & RUN_EXACT)) return NOT_LAST;
  if (e->halt_at && (int64_t)e->halt_at >= now) hard = least(hard, (int64_t)e->halt_at - now);
  return hard - soft >= 2 * (int64_t)BLOCK_INSNS ? soft : NOT_LAST;
}

// Cycles to grant to a block of the kind BLOCK_LAST, less than 0: it must not run. A run that may end inside an instruction
// asks before the one with which its budget ends, so no block may contain that.
static int64_t last_grant(const struct direct_engine *e, const struct direct_block *b, int64_t budget) {
  bool is_over = e->instructions_left < 0 || e->cycles_left <= 0;
  if (b->pauses) return -1;
  if (!e->inside.choice || is_over) return budget > 1 ? budget - 1 : 0;
  if (b->n > e->instructions_left || b->cost > e->cycles_left) return -1;
  return budget > e->blocks->last_cost_most ? budget - e->blocks->last_cost_most : 0;
}

// Runs blocks from the PC on up to a reason to stop or an instruction that C executes. Returns false
// if the PC has no block to run.
bool direct_run_blocks(struct direct_engine *e) {
  bool ran = false;
  enum next next = NEXT_UNIT;
  if (e->steps_only || e->log.physical || !e->costs.instruction || (e->flags & (FLAG_TF | FLAG_AC))) return false;
  for (;;) {
    struct direct_context *c = e->context;
    uint64_t epoch = e->units.epoch;
    bool hot = next == NEXT_BLOCK && (uint32_t)c->exit == EXIT_HOT;
    int64_t budget = hot || next == NEXT_APART ? NOT_LAST : last_budget(e), cycles;
    bool last = budget != NOT_LAST;
    if (last && e->boundary && direct_is_exhausted(e)) return ran;
    struct direct_block *b = next == NEXT_APART ? block_apart(e)
                             : hot              ? direct_block_lengthen(e, c->rip)
                                                : block_at(e, c->rip, last ? BLOCK_LAST : BLOCK_PLAIN);
    if (!b || !b->n) return ran;
    // Making a block may have taken the place of the one that was left.
    if (next == NEXT_BLOCK && epoch == e->units.epoch) connect(e, b);
    if (last) {
      cycles = last_grant(e, b, budget);
      if (cycles < 0) return ran;
    } else {
      int64_t instructions = least(direct_free_instructions(e), b->pauses ? before_pause(e) : INT64_MAX);
      if (b->n > instructions || b->cost > e->cycles_left) return ran;
      cycles = least(least(instructions, e->cycles_left) - e->blocks->cost_most, GRANT_MOST);
    }
    if (e->log.what) {
      cycles = least(cycles, direct_log_room(e));
      direct_log_begin(e, cycles);
    }
    if (e->buffers) cycles = least(cycles, LOGGED_STORES - BLOCK_INSNS);
    if (cycles < 0) cycles = 0;
    grant(e, cycles);
    ran = true;
    next = run_from(e, b);
    settle(e, cycles);
    if (next == NEXT_UNIT || (next == NEXT_BLOCK && !follow_exit(e))) return false;
    if (e->ram->nstale || log_is_full(&e->log)) return true;
  }
}
