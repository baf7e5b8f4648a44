// Runs: budgets, the reasons to stop, and the loop that executes.
#include "general.h"

#include "engine.h"

// ---- reasons to stop ----------------------------------------------------------------------

// Reports whether the run has used its budget up at the PC. Budgets that are not exact are looked
// at after branches alone.
static bool is_over(const struct direct_engine *e) {
  if ((int64_t)direct_instructions_now(e) >= e->most) return true;
  return direct_is_exhausted(e) && (e->boundary || (e->run_flags & RUN_EXACT));
}

bool direct_has_breakpoint(const struct direct_engine *e, uint64_t pc) {
  size_t low = 0, high = e->nbreakpoints;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (e->breakpoints[middle] < pc) low = middle + 1;
    else high = middle;
  }
  return low < e->nbreakpoints && e->breakpoints[low] == pc;
}

// Why the run stops before the instruction at pc, as far as that does not depend on the
// instruction.
static enum direct_stop stops_at(const struct direct_engine *e, uint64_t pc) {
  if (is_over(e)) return STOP_BUDGET;
  if (log_is_full(&e->log)) return STOP_LOG;
  uint64_t now = direct_instructions_now(e);
  if (e->poll_interval && e->boundary && now >= e->poll_at) return STOP_LOG;
  if (e->halt_at && now == e->halt_at) return STOP_BREAKPOINT;
  if (!e->passed && e->nbreakpoints && direct_has_breakpoint(e, pc)) return STOP_BREAKPOINT;
  return STOP_NONE;
}

static bool stops_before(const struct direct_engine *e, const struct direct_insn *in) {
  if (!(e->run_flags & RUN_SYNC) || (e->passed && e->pass_sync)) return false;
  return in->what & (INSN_ATOMIC | INSN_FENCE);
}

// ---- one instruction -------------------------------------------------------------------------

// Counts an instruction that has retired.
static void retire(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t pc = e->context->rip;
  e->instructions_left--;
  e->cycles_left -= in->cost;
  e->boundary = in->kind != KIND_NONE || pc != in->pc + in->length;
  bool again = in->kind == KIND_REP && pc == in->pc;
  e->repeated += again;
  if (!again) e->passed = false;
  if (e->log.what) direct_log_unit(e, in);
}

static bool pauses(const struct direct_engine *e, const struct direct_insn *in) {
  return in->class == CLASS_PAUSE && (e->run_flags & RUN_PAUSE) && direct_instructions_now(e) >= e->pause_from;
}

// Tells private pages of an instruction that is about to be executed.
static void note_alone(struct direct_engine *e, const struct direct_insn *in) {
  bool stores = direct_needs_page(e, in);
  if (!in->order && !stores) return;
  direct_float_park(e);
  heddle_private_alone(e->private_pages, in->pc, in->order, stores);
}

static enum direct_stop step(struct direct_engine *e, struct direct_unit *u) {
  const struct direct_insn *in = &u->in;
  bool traps = e->flags & FLAG_TF;
  e->running = in;
  e->alone = true;
  if (e->private_pages) note_alone(e, in);
  if (e->buffers && in->order) heddle_buffers_before(e->buffers, in->order);
  bool atomic = (e->log.what & LOG_ATOMICS) && direct_atomic_begin(e, in);
  if (e->log.what & LOG_UNITS) direct_memory_log_begin(e, in);
  enum direct_stop why = direct_step(e, u);
  e->log.unit = NULL;
  if ((e->log.what & LOG_UNITS) && why != STOP_NONE && why != STOP_SYSCALL && why != STOP_INTERRUPT) direct_memory_log_undo(e, in);
  if (atomic && !why) direct_atomic_end(e);
  e->alone = false;
  if (e->buffers && in->order) heddle_buffers_after(e->buffers, in->order);
  if (why != STOP_NONE && why != STOP_SYSCALL && why != STOP_INTERRUPT) {
    e->context->rip = in->pc;
    return why;
  }
  retire(e, in);
  if (!why && traps) return direct_raise(e, VECTOR_DEBUG);
  return !why && pauses(e, in) ? STOP_PAUSE : why;
}

// Executes iterations of a repeated instruction at once, before each of which, and before the one after
// them, the run has no reason to stop.
static void repeat(struct direct_engine *e, const struct direct_insn *in) {
  if (in->class != CLASS_STRING || in->kind != KIND_REP || (e->log.what & ~LOG_ATOMICS) || e->buffers || e->private_pages) return;
  if (e->steps_only || (e->flags & FLAG_TF)) return;
  int64_t most = direct_free_instructions(e) - 1, cycles = e->cycles_left - direct_highest_cost(e);
  if (in->cost && cycles / in->cost < most) most = cycles / in->cost;
  if (most <= 0) return;
  int64_t n = (int64_t)direct_string_iterations(e, in, (uint64_t)most);
  if (!n) return;
  e->instructions_left -= n;
  e->cycles_left -= n * in->cost;
  e->repeated += (uint64_t)n;
  e->boundary = true;
}

static void drop_stale(struct direct_engine *e) {
  if (!e->ram->nstale && !e->ram->ndeparted) return;
  direct_float_park(e);
  direct_drop_stale(e);
  direct_check_units(e);
}

enum direct_stop direct_step_at(struct direct_engine *e, uint64_t pc) {
  drop_stale(e);
  struct direct_unit *u = direct_unit_at(e, pc);
  if (!u) return direct_fault(e);
  if (e->log.what) direct_log_unit_code(e, u);
  return step(e, u);
}

static enum direct_stop execute(struct direct_engine *e) {
  enum direct_stop why = direct_inside_begin(e);
  if (why) return why;
  for (;;) {
    drop_stale(e);
    uint64_t pc = e->context->rip;
    if ((why = direct_inside_end(e, pc)) || (why = stops_at(e, pc))) return why;
    if (!direct_atomic_waits(&e->log) && direct_run_blocks(e)) continue;
    pc = e->context->rip;
    struct direct_unit *u = direct_unit_at(e, pc);
    if (!u) return direct_fault(e);
    if (e->log.what && direct_atomic_stops(e, &u->in)) return STOP_BREAKPOINT;
    if (stops_before(e, &u->in)) return STOP_SYNC;
    if (e->log.what) direct_log_unit_code(e, u);
    repeat(e, &u->in);
    why = step(e, u);
    if (why) return why;
  }
}

// ---- runs ---------------------------------------------------------------------------------------

// Moves the thread's registers to where translated code has them, and back.
static void load_thread(struct direct_engine *e) {
  struct direct_thread *t = e->thread;
  struct direct_context *c = e->context;
  copy_bytes(c->gpr, t->gpr, sizeof c->gpr);
  set_flags_of(c, t->rflags);
  c->rip = t->rip;
  c->fs_base = t->fs_base;
  c->gs_base = t->gs_base;
  e->flags = t->rflags & ~(uint64_t)FLAGS_ARITHMETIC;
}

static void store_thread(struct direct_engine *e) {
  struct direct_thread *t = e->thread;
  struct direct_context *c = e->context;
  direct_float_park(e);
  copy_bytes(t->gpr, c->gpr, sizeof c->gpr);
  t->rflags = e->flags | flags_of(c);
  t->rip = c->rip;
  t->fs_base = c->fs_base;
  t->gs_base = c->gs_base;
}

static enum direct_stop run_on(struct direct_engine *e) {
  direct_bank_choose(e);
  if (e->tables_outdated) direct_banks_flush(e);
  e->tables_outdated = false;
  if (e->log.what & LOG_MEMORY) direct_memory_log_run(e);
  direct_drop_stale(e);
  direct_check_units(e);
  load_thread(e);
  direct_find_stack(e);
  direct_signals_enter(e);
  e->log.running = true;
  e->log.atomics.at = false;
  direct_log_forget_calls(e);
  enum direct_stop why = execute(e);
  direct_log_flush(e);
  e->log.running = false;
  store_thread(e);
  direct_signals_leave();
  e->instructions = direct_instructions_now(e);
  e->cycles = direct_cycles_now(e);
  return e->stop = why;
}

static int64_t limited(uint64_t n) { return n < INT64_MAX ? (int64_t)n : INT64_MAX; }

// Runs the loaded thread until something stops it.
enum direct_stop direct_run(struct direct_engine *e, const struct direct_limit *limit) {
  e->most = limited(limit->most);
  e->instruction_limit = e->instructions_left = limited(limit->instructions);
  e->cycle_limit = e->cycles_left = limited(limit->cycles);
  e->run_flags = limit->flags;
  if ((limit->flags & RUN_SYNC) && !e->stops_at_sync) {
    e->stops_at_sync = true;
    direct_blocks_drop_all(e);
  }
  e->pause_from = limit->pause_from;
  e->passed = e->pass_sync = limit->flags & RUN_PASS;
  e->boundary = true;
  e->repeated = 0;
  e->poll_at = e->poll_interval;
  e->has_run = true;
  return run_on(e);
}

// Continues a run that a fault stopped, once its cause is gone, or a breakpoint, or its log. The
// counts and budgets are those of the whole run.
enum direct_stop direct_resume(struct direct_engine *e) {
  if (e->stop == STOP_BREAKPOINT) {
    e->passed = true;
    e->pass_sync = false;
  }
  e->poll_at = e->instructions + e->poll_interval;
  return run_on(e);
}
