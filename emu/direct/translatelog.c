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

void record_after(struct translation *t, unsigned i) {
  const struct direct_insn *in = &t->insns[i];
  struct direct_blocks *a = t->e->blocks;
  t->recorded.branches += in->kind == KIND_COND;
  if (!is_raw(t) || !is_event(in)) return;
  a->events[t->block->first_event + t->recorded.events++] = (struct direct_event){
      .value = end_of(in),
      .cost = (uint16_t)(t->cost_before[i] + in->cost),
      .call = in->kind == KIND_CALL,
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
      .access = t->block->first_access,
      .accesses = in->kind == KIND_COND ? t->recorded_before[i].accesses : t->recorded.accesses,
      .accesses_before = t->recorded_before[i].accesses,
      .place = t->block->first_place,
      .cost = x->cost,
      .events = (uint8_t)(t->recorded_before[i].events + called),
      .places = (uint8_t)x->count,
      .branches = (uint8_t)(t->recorded_before[i].branches + counts(in->kind)),
      .kind = in->kind,
      .end = end_of(in),
      .taken = x->target != end_of(in),
  };
}

// Notes that an exit's record takes words for its cycles.
static void note_words(struct translation *t, uint32_t words, uint32_t cost) {
  uint32_t ratio = (words + cost - 1u) / cost;
  if (ratio > t->e->log.ratio) t->e->log.ratio = ratio;
}

// The words of the record without the target. A side exit is after a conditional branch, which has no accesses.
static uint32_t last_words(const struct translation *t, unsigned i, const struct direct_exit *x) {
  bool side = t->insns[i].kind == KIND_COND;
  return side && !x->class ? t->recorded_before[i].words : t->recorded.words;
}

// ---- outcomes ------------------------------------------------------------------------------

static struct collected collected_of(uint64_t outcomes, unsigned n, bool target) {
  struct collected all = {0};
  for (unsigned some; n; n -= some) {
    some = n < COLLECTED_IN_BYTE ? n : COLLECTED_IN_BYTE;
    all.bytes[all.n++] = (uint8_t)(1u << some | (outcomes >> (n - some) & ((1u << some) - 1)));
  }
  if (target) all.bytes[all.n++] = 0;
  return all;
}

// Pads bytes with others that have no outcomes.
static void pad(struct collected *all, unsigned n) {
  while (all->n < n) all->bytes[all->n++] = 1;
}

// Writes bytes, of which the first has the highest address, one or four at once.
static void put_collected(struct translation *t, const struct collected *all) {
  struct place to = {.base = NO_REGISTER, .index = (uint8_t)t->scratch, .scale = 1, .gs = true};
  if (!all->n) return;
  put_zero_extend_memory(&t->c, 2, t->scratch, in_context(CONTEXT_BUDGET));
  for (unsigned i = 0; i < all->n; i += 4) {
    const uint8_t *b = &all->bytes[i];
    bool one = i + 1 == all->n;
    to.disp = BANK_OUTCOMES - (int32_t)i - (one ? 0 : 3);
    uint32_t four = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    put_imm_to_memory(&t->c, one ? 1 : 4, to, one ? b[0] : (int32_t)four);
  }
}

// Writes a record with the target in the pointer register.
static void put_target_record(struct translation *t, uint32_t number) {
  struct code *c = &t->c;
  put_load(c, t->scratch, in_context(CONTEXT_LOG));
  put_imm_to_memory(c, 8, at_register(t->scratch, 0), (int32_t)number);
  put_store(c, t->pointer, at_register(t->scratch, 8));
  put_op_memory(c, 8, OP_LEA, t->scratch, at_register(t->scratch, 16));
  put_store(c, t->scratch, in_context(CONTEXT_LOG));
}

// ---- calls and returns ---------------------------------------------------------------------

static struct place newest_call(const struct translation *t) {
  return (struct place){.base = NO_REGISTER, .index = (uint8_t)t->scratch, .scale = 1, .gs = true, .disp = CONTEXT_CALLS};
}

// Moves the place of the newest call, which is in the scratch register.
static void put_next_call(struct translation *t, int32_t distance) {
  put_op_memory(&t->c, 4, OP_LEA, t->scratch, at_register(t->scratch, distance));
  put_op_imm(&t->c, 4, 4, t->scratch, 8 * CONTEXT_CALLS_COUNT - 8);
}

static void put_call(struct translation *t, uint64_t next) {
  put_next_call(t, 8);
  put_constant(&t->c, t->pointer, next);
  put_store(&t->c, t->pointer, newest_call(t));
}

// Adds the return addresses of some events' calls, and that of an indirect call unless it is 0.
static void put_calls(struct translation *t, const struct direct_event *events, unsigned n, uint64_t indirect) {
  struct code *c = &t->c;
  put_store(c, t->pointer, in_context(CONTEXT_SPARE));
  put_load(c, t->scratch, in_context(CONTEXT_NEWEST));
  for (unsigned i = 0; i < n; i++)
    if (events[i].call) put_call(t, events[i].value);
  if (indirect) put_call(t, indirect);
  put_store(c, t->scratch, in_context(CONTEXT_NEWEST));
  put_load(c, t->pointer, in_context(CONTEXT_SPARE));
}

// Takes the newest call away if the target in the pointer register is its return address.
static void put_take_call(struct translation *t) {
  struct code *c = &t->c;
  struct other_return *o = &t->other_return;
  put_load(c, t->scratch, in_context(CONTEXT_NEWEST));
  put_op_register(c, 8, OP_TEST, t->pointer, t->pointer);
  o->from[0] = put_jump_if(c, CC_Z);
  put_op_memory(c, 8, OP_CMP, t->pointer, newest_call(t));
  o->from[1] = put_jump_if(c, CC_NZ);
  put_imm_to_memory(c, 8, newest_call(t), 0);
  put_next_call(t, -8);
  put_store(c, t->scratch, in_context(CONTEXT_NEWEST));
}

// The same with a call of the block itself.
static void put_compare_call(struct translation *t, uint64_t next) {
  put_constant(&t->c, t->scratch, next);
  put_op_register(&t->c, 8, OP_CMP, t->pointer, t->scratch);
  t->other_return.from[0] = put_jump_if(&t->c, CC_NZ);
}

// Where a block continues with a return to elsewhere.
void put_other_return(struct translation *t) {
  struct other_return *o = &t->other_return;
  for (unsigned k = 0; k < 2; k++)
    if (o->from[k]) patch_jump(o->from[k], t->c.at);
  if (!o->from[0]) return;
  put_load(&t->c, t->scratch, in_context(CONTEXT_NEWEST));
  put_imm_to_memory(&t->c, 8, newest_call(t), 0);
  put_target_record(t, o->number);
  put_collected(t, &o->collected);
  patch_jump(put_jump(&t->c), o->after);
}

// What the path to an exit has for the log, calls and the exit's own branch included.
struct path {
  const struct direct_event *events;
  unsigned n, calls, last_call;
  uint64_t outcomes;
  unsigned noutcomes;
};

static void add_to_path(struct path *p, bool taken) {
  p->outcomes = p->outcomes << 1 | taken;
  p->noutcomes++;
}

static struct path path_to(const struct translation *t, const struct direct_insn *in, const struct direct_record *r) {
  struct path p = {.events = &t->e->blocks->events[r->event], .n = r->events};
  for (unsigned i = 0; i < p.n; i++) {
    if (p.events[i].call) {
      p.calls++;
      p.last_call = i;
    } else {
      add_to_path(&p, p.events[i].taken);
    }
  }
  if (in->kind == KIND_COND) add_to_path(&p, r->taken);
  return p;
}

// Returns the number of bytes.
static unsigned put_collected_return(struct translation *t, const struct path *p, uint32_t number) {
  struct other_return *o = &t->other_return;
  if (p->calls > 1) put_calls(t, p->events, p->last_call, 0);
  if (p->calls) put_compare_call(t, p->events[p->last_call].value);
  else put_take_call(t);
  struct collected matching = collected_of(p->outcomes << 1 | 1, p->noutcomes + 1, false);
  o->collected = collected_of(p->outcomes, p->noutcomes, true);
  pad(&matching, o->collected.n);
  pad(&o->collected, matching.n);
  put_collected(t, &matching);
  o->number = number;
  o->after = t->c.at;
  return matching.n;
}

// Collects the outcomes where the block is left after instruction i, with the target of an indirect branch in
// the pointer register. The flags are free. Returns the number of bytes.
unsigned put_collect(struct translation *t, unsigned i, const struct direct_exit *x) {
  const struct direct_insn *in = &t->insns[i];
  uint32_t number = (uint32_t)(x - t->e->blocks->exits);
  struct direct_record *r = &t->e->blocks->records[number];
  if (!log_collects(&t->e->log)) return 0;
  describe(t, i, x, r);
  struct path p = path_to(t, in, r);
  if (in->kind == KIND_RET) return put_collected_return(t, &p, number);
  uint64_t indirect = in->kind == KIND_CALL_IND ? r->end : 0;
  if (p.calls || indirect) put_calls(t, p.events, p.n, indirect);
  if (x->class) put_target_record(t, number);
  struct collected all = collected_of(p.outcomes, p.noutcomes, x->class);
  put_collected(t, &all);
  return all.n;
}

// ---- records -------------------------------------------------------------------------------

// Completes the record where the block is left after instruction i, with the target of an indirect
// branch in the pointer register. The host's flags stay.
void put_record(struct translation *t, unsigned i, const struct direct_exit *x) {
  struct code *c = &t->c;
  struct direct_log *log = &t->e->log;
  uint32_t number = (uint32_t)(x - t->e->blocks->exits);
  if (log_collects(log)) return;
  if (!is_raw(t)) {
    unsigned branches = t->recorded_before[i].branches + (unsigned)counts(t->insns[i].kind);
    if (!(log->what & LOG_COUNT) || !branches) return;
    // The flags have the sign of the budget.
    put_load(c, t->scratch, in_context(CONTEXT_BRANCHES));
    put_op_memory(c, 8, OP_LEA, t->scratch, at_register(t->scratch, (int32_t)branches));
    put_store(c, t->scratch, in_context(CONTEXT_BRANCHES));
    return;
  }
  describe(t, i, x, &t->e->blocks->records[number]);
  uint32_t words = last_words(t, i, x) + (x->class ? 1u : 0u);
  put_imm_to_memory(c, 4, at_register(t->log, 0), (int32_t)(number | words << RECORD_EXIT_BITS));
  if (log->what & LOG_TIMED) {
    put_op_memory(c, 4, OP_LOAD, t->scratch, in_context(CONTEXT_BUDGET + 4));
    put_op_memory(c, 4, OP_STORE, t->scratch, at_register(t->log, 4));
  }
  if (x->class) put_store(c, t->pointer, at_register(t->log, 8 * ((int32_t)words - 1)));
  put_op_memory(c, 8, OP_LEA, t->log, at_register(t->log, 8 * (int32_t)words));
  note_words(t, words, x->cost);
}

_Static_assert(REGIONS * REGION_EXITS < 1u << RECORD_EXIT_BITS && RECORD_WORDS < 1u << (31 - RECORD_EXIT_BITS), "RECORD_EXIT_BITS");

// ---- accesses ------------------------------------------------------------------------------

static bool logs_accesses(const struct translation *t) { return t->e->log.what & LOG_MEMORY; }

static uint16_t new_word(struct translation *t) { return t->recorded.words++; }

static struct place word_place(const struct translation *t, unsigned word) { return at_register(t->log, 8 * (int32_t)word); }

// Keeps the address in the pointer register.
uint16_t put_address_word(struct translation *t) {
  if (!logs_accesses(t)) return 0;
  uint16_t word = new_word(t);
  put_store(&t->c, t->pointer, word_place(t, word));
  return word;
}

static void put_load_part(struct code *c, unsigned r, struct place m, unsigned n) {
  if (n >= 4) {
    put_op_memory(c, n >= 8 ? 8 : 4, OP_LOAD, r, m);
    return;
  }
  put_zero_extend_memory(c, n == 2 ? 2 : 1, r, m);
}

// Keeps bytes of memory. Returns the first word.
static uint16_t put_bytes(struct translation *t, struct place m, unsigned size) {
  uint16_t first = t->recorded.words;
  for (unsigned at = 0; at < size; at += 8) {
    struct place part = m;
    part.disp += (int32_t)at;
    put_load_part(&t->c, t->scratch, part, size - at);
    put_store(&t->c, t->scratch, word_place(t, new_word(t)));
  }
  return first;
}

// Reports whether accesses of the instruction are logged with their values.
static bool selects(const struct translation *t, const struct direct_insn *in) {
  const struct heddle_mem_core *memory = &t->e->log.memory;
  return logs_accesses(t) && heddle_mem_overlaps(memory->code, memory->ncode, in->pc, in->pc + 1);
}

static struct heddle_mem_access *new_access(struct translation *t, unsigned i, bool store, unsigned size) {
  struct direct_block *b = t->block;
  struct heddle_mem_access *a = &t->e->blocks->accesses[b->first_access + b->accesses++];
  t->recorded.accesses = b->accesses;
  *a = (struct heddle_mem_access){.pc = t->insns[i].pc, .at = t->where.at, .address_word = t->where.word,
                              .size = (uint8_t)size, .branches = t->recorded_before[i].branches, .store = store};
  return a;
}

// How the value of an access can be had from a register once the instruction is executed.
enum source { FROM_MEMORY, FROM_GENERAL, FROM_VECTOR };

static enum source source_of(const struct direct_insn *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
      return in->suffix || in->opcode < 0x88 || in->opcode > 0x8b ? FROM_MEMORY : FROM_GENERAL;
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:  // of 16 bits it writes no more
      return in->width < in->size ? FROM_MEMORY : FROM_GENERAL;
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSS:
      return FROM_VECTOR;
    default:
      return FROM_MEMORY;
  }
}

// Stores 4, 8 or 16 bytes of a vector register.
static void put_vector_store(struct code *c, unsigned r, unsigned size, struct place m) {
  if (size == 4) put8(c, 0xf3);
  if (r >= 8 || m.base >= 8) put8(c, 0x40 | (r >= 8 ? 4u : 0u) | (m.base >= 8 ? 1u : 0u));
  put8(c, 0x0f);
  put8(c, size == 8 ? 0x13 : 0x11);
  put_modrm(c, r, m);
}

static uint16_t put_value(struct translation *t, const struct direct_insn *in, struct place m) {
  enum source source = source_of(in);
  if (source == FROM_MEMORY) return put_bytes(t, m, in->size);
  uint16_t first = t->recorded.words;
  t->recorded.words += (uint16_t)((in->size + 7u) / 8);
  if (source == FROM_GENERAL) put_store(&t->c, insn_reg(in), word_place(t, first));
  else put_vector_store(&t->c, insn_reg(in), in->size, word_place(t, first));
  return first;
}

static bool loads_alone(const struct direct_insn *in) { return !(in->what & INSN_STORES); }

// Before the instruction: what it loads.
void put_log_before(struct translation *t, unsigned i, struct place m) {
  const struct direct_insn *in = &t->insns[i];
  if (!selects(t, in) || !(in->what & INSN_LOADS)) return;
  if (loads_alone(in) && source_of(in) != FROM_MEMORY) return;
  uint16_t word = put_bytes(t, m, in->size);
  new_access(t, i, false, in->size)->value_word = word;
}

// After it: what it has stored, or loaded if a register has that.
void put_log_after(struct translation *t, unsigned i, struct place m) {
  const struct direct_insn *in = &t->insns[i];
  bool store = !loads_alone(in);
  if (!selects(t, in) || (!store && (!(in->what & INSN_LOADS) || source_of(in) == FROM_MEMORY))) return;
  struct heddle_mem_access *a = new_access(t, i, store, in->size);
  a->value_word = put_value(t, in, m);
}

// An access of 8 bytes, which a register has.
void put_log_register(struct translation *t, unsigned i, unsigned r, bool store) {
  if (!selects(t, &t->insns[i])) return;
  struct heddle_mem_access *a = new_access(t, i, store, 8);
  a->value_word = new_word(t);
  put_store(&t->c, r, word_place(t, a->value_word));
}

void log_constant_store(struct translation *t, unsigned i, int64_t value) {
  if (selects(t, &t->insns[i])) new_access(t, i, true, 8)->value = value;
}
