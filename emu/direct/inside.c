// What heddle_insides needs of the engine. Its functions are called with the guest's floating-point
// state in the thread.
#include "general.h"

#include "engine.h"
#include "insidelog.h"

// Reports whether the instruction certainly has no place inside: no access, or one within a line.
static bool is_simple(struct direct_engine *e, const struct direct_insn *in) {
  if (in->class == CLASS_JUMP_IF || in->class == CLASS_JUMP) return true;
  if (in->class != CLASS_NATIVE) return false;
  if (!(in->what & INSN_MEMORY)) return true;
  bool both = (in->what & INSN_LOADS) && (in->what & INSN_STORES), power = in->size && in->size <= 8 && !(in->size & (in->size - 1));
  if (both || !power || (in->what & (INSN_BIT_STRING | INSN_ATOMIC))) return false;
  return direct_address_of(e, in) % HEDDLE_LINE_SIZE + in->size <= HEDDLE_LINE_SIZE;
}

static bool describe(void *engine, uint64_t pc, struct heddle_insn_facts *out) {
  struct direct_engine *e = engine;
  const struct direct_unit *u = direct_unit_at(e, pc);
  struct heddle_regs regs;
  struct heddle_insn in;
  if (!u || is_simple(e, &u->in)) return false;
  direct_registers(e, &regs);
  if (!heddle_insn_decode(u->in.bytes, u->in.length, &regs, &in)) return false;
  int n = heddle_insn_accesses(&in, out->accesses, 4);
  if (n < 0) return false;
  out->n = (uint32_t)n;
  out->cost = u->in.cost;
  out->atomic = u->in.what & INSN_ATOMIC;
  out->calls = u->in.kind == KIND_CALL || u->in.kind == KIND_CALL_IND;
  return true;
}

static uint64_t pc_of(void *engine) { return ((struct direct_engine *)engine)->context->rip; }

static void registers_of(void *engine, struct heddle_regs *out) { direct_registers(engine, out); }

static enum heddle_stop execute(void *engine, uint64_t pc) {
  struct direct_engine *e = engine;
  direct_bank_refresh(e);
  enum direct_stop why = direct_step_at(e, pc);
  direct_float_park(e);
  return (enum heddle_stop)why;
}

// A repeated string instruction is passed with all its iterations.
static void pass(void *engine, uint64_t pc) {
  struct direct_engine *e = engine;
  const struct direct_unit *u = e->context->rip == pc ? direct_unit_at(e, pc) : NULL;
  if (!u || u->in.kind != KIND_REP) e->passed = false;
}

static void set_fault(void *engine, uint64_t address, enum heddle_access access, enum heddle_walk kind) {
  struct direct_engine *e = engine;
  e->access = access;
  e->walk = kind;
  e->fault_address = address;
}

// Cycles that no instruction costs more than.
int64_t direct_highest_cost(const struct direct_engine *e) {
  const struct direct_costs *c = &e->costs;
  return (int64_t)c->instruction + c->memory + c->divide + c->atomic + c->fence + c->sqrt + c->transcendental + c->check;
}

static uint32_t highest_cost(void *engine) { return (uint32_t)direct_highest_cost(engine); }

static bool at_limit(void *engine) {
  const struct direct_engine *e = engine;
  return (int64_t)direct_instructions_now(e) >= e->most;
}

static bool waits(void *engine) {
  const struct direct_engine *e = engine;
  return e->buffers || e->private_pages;
}

static uint64_t branches(void *engine) { return ((struct direct_engine *)engine)->log.branches; }

static void log_pages(void *engine, struct heddle_space *space, const struct heddle_inside *in) {
  heddle_inside_log_pages(&((struct direct_engine *)engine)->log.memory, space, in);
}

static void log_pieces(void *engine, struct heddle_space *space, const struct heddle_inside *in, uint32_t from,
                       uint32_t upto) {
  heddle_inside_log_pieces(&((struct direct_engine *)engine)->log.memory, space, in, from, upto);
}

static void unlog(void *engine) { heddle_mem_undo(&((struct direct_engine *)engine)->log.memory); }

static const struct heddle_inside_functions functions = {
    .describe = describe, .pc = pc_of, .registers = registers_of, .execute = execute, .pass = pass,
    .set_fault = set_fault, .highest_cost = highest_cost, .at_limit = at_limit, .waits = waits,
    .branches = branches, .log_pages = log_pages, .log_pieces = log_pieces, .unlog = unlog,
};

void direct_inside_init(struct direct_engine *e) {
  e->inside = (struct heddle_insides){.functions = &functions, .engine = e, .ram = e->ram, .space = &e->space,
                                      .buffers = &e->buffers, .instructions = &e->instructions_left,
                                      .cycles = &e->cycles_left};
}

// Completes the instruction that the thread is inside when it starts to run, or some more of its
// accesses. NONE: the thread is inside none.
enum direct_stop direct_inside_begin(struct direct_engine *e) {
  if (!e->inside.interrupted.n) return STOP_NONE;
  direct_float_park(e);
  enum heddle_stop why = heddle_inside_stay(&e->inside) ? HEDDLE_STOP_BUDGET : heddle_inside_finish(&e->inside);
  direct_bank_refresh(e);
  return (enum direct_stop)why;
}

// Reports whether the run ends inside the instruction at pc, see heddle_inside_end.
enum direct_stop direct_inside_end(struct direct_engine *e, uint64_t pc) {
  bool near = !e->instructions_left || e->cycles_left < direct_highest_cost(e);
  if (!e->inside.choice || !near) return STOP_NONE;
  direct_float_park(e);
  enum heddle_stop why = heddle_inside_end(&e->inside, pc);
  direct_bank_refresh(e);
  return (enum direct_stop)why;
}
