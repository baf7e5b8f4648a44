// What a block writes into the raw log.
#include "translate.h"

static bool is_raw(const struct translation *t) { return log_is_raw(&t->e->log); }

static uint64_t end_of(const struct direct_insn *in) { return in->pc + in->length; }

void begin_record(struct translation *t) { t->recorded.words = 1; }

void record_before(struct translation *t, unsigned i) {
  t->recorded_before[i] = t->recorded;
  if (!is_raw(t)) return;
  struct direct_place *p = &t->e->blocks->places[t->block->first_place + i];
  *p = (struct direct_place){t->insns[i].pc, t->insns[i].length};
}

// Reports whether the log of branches has something of the instruction where it is on the block's path.
static bool is_event(const struct direct_insn *in) {
  return in->kind == KIND_COND || (in->kind == KIND_CALL && in->target != end_of(in));
}

// The outcomes of the block's events before number n, and after the last call. Returns how many.
static uint8_t outcomes_before(const struct translation *t, unsigned n, uint64_t *bits) {
  const struct direct_event *events = &t->e->blocks->events[t->block->first_event];
  unsigned first = n;
  *bits = 0;
  while (first && !events[first - 1].call) first--;
  for (unsigned k = first; k < n; k++) *bits = *bits << 1 | events[k].taken;
  return (uint8_t)(n - first);
}

void record_after(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  struct direct_blocks *a = t->e->blocks;
  t->recorded.branches += in->kind == KIND_COND;
  if (!is_raw(t) || !is_event(in)) return;
  bool call = in->kind == KIND_CALL;
  if (call) {
    struct direct_call *c = &a->calls[t->block->first_event + t->recorded.calls++];
    c->value = end_of(in);
    c->noutcomes = outcomes_before(t, t->recorded.events, &c->outcomes);
  }
  a->events[t->block->first_event + t->recorded.events++] = (struct direct_event){
      .value = end_of(in),
      .cost = (uint16_t)(t->cost_before[i] + in->cost),
      .call = call,
      .taken = t->taken[i] && in->target != end_of(in),
  };
  t->block->events = t->recorded.events;
}

static bool counts(unsigned kind) { return kind == KIND_COND || kind == KIND_JUMP || kind == KIND_CALL_IND || kind == KIND_RET; }

// Describes the record of an exit after instruction i. A direct call is among the block's events.
static void describe(const struct translation *t, unsigned i, const struct direct_exit *x, struct direct_record *r) {
  const struct direct_insn *in = &t->insns[i];
  bool called = in->kind == KIND_CALL && is_event(in);
  *r = (struct direct_record){
      .event = t->block->first_event,
      .call = t->block->first_event,
      .place = t->block->first_place,
      .cost = x->cost,
      .words = t->recorded_before[i].words,
      .events = (uint8_t)(t->recorded_before[i].events + called),
      .calls = (uint8_t)(t->recorded_before[i].calls + called),
      .places = (uint8_t)x->count,
      .branches = (uint8_t)(t->recorded_before[i].branches + counts(in->kind)),
      .kind = in->kind,
      .end = end_of(in),
      .taken = x->target != end_of(in),
  };
  r->noutcomes = outcomes_before(t, r->events, &r->outcomes);
  if (in->kind == KIND_COND) {
    r->outcomes = r->outcomes << 1 | r->taken;
    r->noutcomes++;
  }
  r->plain = !r->calls && !x->class;
}

// Completes the record where the block is left after instruction i, with the target of an indirect
// branch in the pointer register. The host's flags stay.
void put_record(struct translation *t, unsigned i, const struct direct_exit *x) {
  struct code *c = &t->c;
  struct direct_log *log = &t->e->log;
  uint32_t number = (uint32_t)(x - t->e->blocks->exits);
  if (!is_raw(t)) {
    unsigned branches = t->recorded_before[i].branches + (unsigned)counts(t->insns[i].kind);
    if (!(log->what & LOG_COUNT) || !branches) return;
    // The flags have the sign of the budget.
    put_load(c, t->scratch, in_context(CONTEXT_BRANCHES));
    put_op_memory(c, 8, OP_LEA, t->scratch, at_register(t->scratch, (int32_t)branches));
    put_store(c, t->scratch, in_context(CONTEXT_BRANCHES));
    return;
  }
  struct direct_record *r = &t->e->blocks->records[number];
  describe(t, i, x, r);
  put_imm_to_memory(c, 4, at_register(t->log, 0), (int32_t)number);
  if (log->what & LOG_TIMED) {
    put_op_memory(c, 4, OP_LOAD, t->scratch, in_context(CONTEXT_BUDGET + 4));
    put_op_memory(c, 4, OP_STORE, t->scratch, at_register(t->log, 4));
  }
  if (x->class) put_store(c, t->pointer, at_register(t->log, 8 * r->words++));
  put_op_memory(c, 8, OP_LEA, t->log, at_register(t->log, 8 * r->words));
  uint32_t ratio = (r->words + x->cost - 1u) / x->cost;
  if (ratio > log->ratio) log->ratio = ratio;
}
