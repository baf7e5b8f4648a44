#include "general.h"

#include "block.h"

#include <stdlib.h>

// ---- opening -------------------------------------------------------------------------------

static size_t raw_bytes(void) { return (RAW_WORDS_COLLECTED + RECORD_WORDS) * sizeof(uint64_t); }
static size_t stream_bytes(void) { return ((size_t)COLLECTED_IN_BYTE << COLLECTED_BITS) / 8 + 2 * sizeof(uint64_t); }
static size_t records_bytes(void) { return (REGIONS * REGION_EXITS + 1) * sizeof(struct direct_record); }
static size_t events_bytes(void) { return REGIONS * REGION_EVENTS * sizeof(struct direct_event); }
static size_t places_bytes(void) { return REGIONS * REGION_PLACES * sizeof(struct direct_place); }

static bool open_raw(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  struct direct_blocks *a = e->blocks;
  if (!log_is_raw(log) || log->raw) return true;
  log->ratio = 1;
  log->raw = heddle_reserve(raw_bytes());
  log->stream = heddle_reserve(stream_bytes());
  log->extracts = __builtin_cpu_supports("bmi2");
  a->records = heddle_reserve(records_bytes());
  a->events = heddle_reserve(events_bytes());
  a->places = heddle_reserve(places_bytes());
  return log->raw && log->stream && a->records && a->events && a->places;
}

// Starts the log of atomic instructions.
int direct_log_atomics(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  if (log->what & LOG_ATOMICS) return 0;
  log->atomics.entries = calloc(ATOMICS, sizeof *log->atomics.entries);
  if (!log->atomics.entries) return -1;
  log->what |= LOG_ATOMICS;
  return 0;
}

// Starts logs, before a run, before it is resumed, or after it. Blocks that were made before do not log. -1: there
// is no memory.
int direct_log_start(struct direct_engine *e, uint32_t what) {
  struct direct_log *log = &e->log;
  if (e->has_run) direct_blocks_drop_all(e);
  log->what |= what;
  log->outcomes = 1;
  log->outcomes_full = (uint64_t)1 << (log->what & LOG_TIMED ? WORD_OUTCOMES_TIMED : WORD_OUTCOMES);
  return open_raw(e) && direct_memory_log_open(e) ? 0 : -1;
}

// Ends the logs of branches and of accesses.
void direct_log_end(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  log->what &= ~(LOG_BRANCHES | LOG_TIMED | LOG_RETURNS | LOG_COUNT | LOG_MEMORY);
  log->nwords = log->ncode = log->nbytes = 0;
  heddle_mem_core_close(&log->memory);
  log->memory = (struct heddle_mem_core){0};
  log->bank = NULL;
  direct_blocks_drop_all(e);
  for (unsigned k = 0; k < BANKS; k++)
    if (e->banks[k].context) e->banks[k].context->leave = direct_leave;
}

void direct_log_close(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  heddle_unreserve(log->raw, raw_bytes());
  heddle_unreserve(log->stream, stream_bytes());
  if (e->blocks) {
    heddle_unreserve(e->blocks->records, records_bytes());
    heddle_unreserve(e->blocks->events, events_bytes());
    heddle_unreserve(e->blocks->places, places_bytes());
  }
  free(log->words);
  free(log->code);
  free(log->bytes);
  free(log->instructions);
  free(log->atomics.entries);
  direct_memory_log_close(e);
}

// ---- words of branches -----------------------------------------------------------------------

// Makes room for need more elements of size bytes each.
static void *make_room(struct direct_engine *e, void *p, size_t used, size_t need, size_t *room, size_t size) {
  if (used + need <= *room) return p;
  direct_float_park(e);
  *room = 2 * (used + need);
  p = realloc(p, *room * size);
  if (!p) abort();
  return p;
}

static void add_word(struct direct_engine *e, uint64_t tag, uint64_t payload) {
  struct direct_log *log = &e->log;
  if (__builtin_expect(log->nwords == log->room, 0))
    log->words = make_room(e, log->words, log->nwords, 4096, &log->room, sizeof *log->words);
  log->words[log->nwords++] = tag << WORD_TAG_SHIFT | payload;
}

static void add_time(struct direct_engine *e, uint64_t time) {
  if (e->log.what & LOG_TIMED) add_word(e, WORD_TIME, time);
}

static inline unsigned outcomes_in(uint64_t word) { return 63 - (unsigned)__builtin_clzll(word); }

// Logs the outcomes that are not in a word yet.
static void flush_outcomes(struct direct_engine *e, uint64_t time) {
  struct direct_log *log = &e->log;
  uint64_t n = outcomes_in(log->outcomes), bits = log->outcomes ^ (uint64_t)1 << n;
  if (!n) return;
  log->outcomes = 1;
  add_time(e, time);
  add_word(e, WORD_TNT, n << 48 | bits);
}

void direct_log_flush(struct direct_engine *e) {
  if (e->log.what & LOG_BRANCHES) flush_outcomes(e, direct_cycles_now(e));
}

static void add_outcome(struct direct_engine *e, bool taken, uint64_t time) {
  struct direct_log *log = &e->log;
  log->outcomes = log->outcomes << 1 | taken;
  if (log->outcomes >= log->outcomes_full) flush_outcomes(e, time);
}

// Forgets the calls whose returns could be compressed.
void direct_log_forget_calls(struct direct_engine *e) { e->context->calls[e->context->newest / 8] = 0; }

static void push_call(struct direct_engine *e, uint64_t next) {
  struct direct_context *c = e->context;
  c->newest = (c->newest + 8) % sizeof c->calls;
  c->calls[c->newest / 8] = next;
}

// Reports whether a return is to the newest call, which it takes away.
static bool pop_call(struct direct_engine *e, uint64_t target) {
  struct direct_context *c = e->context;
  bool matches = target && c->calls[c->newest / 8] == target;
  direct_log_forget_calls(e);
  if (matches) c->newest = (c->newest - 8) % sizeof c->calls;
  return matches;
}

static void add_call(struct direct_engine *e, uint64_t next, uint64_t time) {
  if (e->log.what & LOG_RETURNS) {
    push_call(e, next);
    return;
  }
  flush_outcomes(e, time);
  add_word(e, WORD_CALL, next);
}

static void add_target(struct direct_engine *e, uint64_t tag, uint64_t pc, uint64_t time) {
  flush_outcomes(e, time);
  add_time(e, time);
  add_word(e, tag, pc);
}

// Logs the branch of an instruction that ends at end.
static void add_branch(struct direct_engine *e, unsigned kind, uint64_t end, uint64_t pc, uint64_t time) {
  switch (kind) {
    case KIND_COND:
      add_outcome(e, pc != end, time);
      return;
    case KIND_CALL:  // a call of the next instruction has no return
      if (pc != end) add_call(e, end, time);
      return;
    case KIND_CALL_IND:
      add_call(e, end, time);
      add_target(e, WORD_TIP, pc, time);
      return;
    case KIND_JUMP:
      add_target(e, WORD_TIP, pc, time);
      return;
    case KIND_RET:
      if ((e->log.what & LOG_RETURNS) && pop_call(e, pc)) add_outcome(e, true, time);
      else add_target(e, WORD_RET, pc, time);
      return;
    default:
      return;
  }
}

// Logs the first n events of a block that was entered at a time.
static void add_events(struct direct_engine *e, uint32_t first, unsigned n, uint64_t entered) {
  const struct direct_event *events = &e->blocks->events[first];
  for (unsigned i = 0; i < n; i++) {
    uint64_t time = entered + events[i].cost;
    if (events[i].call) add_call(e, events[i].value, time);
    else add_outcome(e, events[i].taken, time);
  }
}

// ---- records -------------------------------------------------------------------------------------

static void add_instructions(struct direct_engine *e, uint32_t first, unsigned n) {
  struct direct_log *log = &e->log;
  if (!(log->what & LOG_INSTRUCTIONS)) return;
  log->instructions = make_room(e, log->instructions, log->ninstructions, n, &log->instructions_room, sizeof *log->instructions);
  for (unsigned i = 0; i < n; i++) log->instructions[log->ninstructions++] = e->blocks->places[first + i].pc;
}

// Logs the branches of a record with their times, and of its last instruction unless that did not retire.
static void add_record(struct direct_engine *e, const struct direct_record *r, uint64_t target, bool retired, uint64_t time) {
  add_events(e, r->event, r->events, time - r->cost);
  if (!retired) return;
  if (r->kind == KIND_COND) add_outcome(e, r->taken, time);
  if (r->kind == KIND_COND || r->kind == KIND_CALL) return;
  add_branch(e, r->kind, r->end, target, time);
}

static bool is_indirect(const struct direct_record *r) {
  return r->kind == KIND_JUMP || r->kind == KIND_CALL_IND || r->kind == KIND_RET;
}

// ---- collected outcomes ------------------------------------------------------------------------------

// A stream of bits, the first one highest. Less than 8 are not in whole bytes yet.
struct bits {
  uint8_t *begin, *at;
  uint64_t rest;  // from the highest on
  unsigned have;
  uint64_t added;
};

// Adds the n lowest bits, 56 at most; the others are 0.
static inline void add_bits(struct bits *b, uint64_t bits, unsigned n) {
  b->rest |= bits << 1 << (63 - b->have - n);
  uint64_t swapped = __builtin_bswap64(b->rest);
  memcpy(b->at, &swapped, sizeof swapped);
  b->have += n;
  b->added += n;
  b->at += b->have / 8;
  b->rest <<= b->have & 56;
  b->have &= 7;
}

static inline uint64_t bits_at(const struct bits *b, size_t at, unsigned n) {
  uint64_t word;
  memcpy(&word, b->begin + at / 8, sizeof word);
  return n ? __builtin_bswap64(word) << at % 8 >> (64 - n) : 0;
}

// Writes words of the stream's bits, and empties it. What does not fill a word stays in log->outcomes.
static void write_bits(struct direct_log *log, struct bits *b) {
  size_t n = (size_t)(b->at - b->begin) * 8 + b->have, at = 0;
  for (; n - at >= WORD_OUTCOMES; at += WORD_OUTCOMES)
    log->words[log->nwords++] = (uint64_t)WORD_TNT << WORD_TAG_SHIFT | (uint64_t)WORD_OUTCOMES << 48 | bits_at(b, at, WORD_OUTCOMES);
  unsigned left = (unsigned)(n - at);
  log->outcomes = (uint64_t)1 << left | bits_at(b, at, left);
  *b = (struct bits){b->begin, b->begin, 0, 0, b->added};
}

// Adds groups of eight bytes of outcomes, as long as they have no indirect branch. Returns the next byte.
static __attribute__((target("bmi2,popcnt"))) const uint8_t *add_groups(struct bits *b, const uint8_t *p, const uint8_t *end) {
  for (; p - end >= 8; p -= 8) {
    uint64_t group, below;
    memcpy(&group, p - 7, sizeof group);
    if ((group - 0x0101010101010101) & ~group & 0x8080808080808080) break;
    below = group | (group >> 1 & 0x7f7f7f7f7f7f7f7f);  // ones from the leading 1 of each byte on
    below |= below >> 2 & 0x3f3f3f3f3f3f3f3f;
    below |= below >> 4 & 0x0f0f0f0f0f0f0f0f;
    below = below >> 1 & 0x7f7f7f7f7f7f7f7f;
    add_bits(b, __builtin_ia32_pext_di(group, below), (unsigned)__builtin_popcountll(below));
  }
  return p;
}

static void add_target_word(struct direct_engine *e, struct bits *b, const uint64_t *record) {
  struct direct_log *log = &e->log;
  const struct direct_record *r = &e->blocks->records[record[0]];
  if (!is_canonical(record[1])) return;  // it is undone
  write_bits(log, b);
  flush_outcomes(e, 0);
  add_word(e, r->kind == KIND_RET ? WORD_RET : WORD_TIP, record[1]);
  log->branches++;
}

// Adds collected outcomes and the targets of indirect branches.
static void write_collected(struct direct_engine *e, const uint64_t *end_of_targets) {
  struct direct_log *log = &e->log;
  const uint8_t *table = (const uint8_t *)e->context + BANK_OUTCOMES;
  const uint8_t *p = table + UINT16_MAX, *end = table + (uint16_t)e->context->budget;
  const uint64_t *targets = log->raw;
  size_t need = (size_t)(p - end) * COLLECTED_IN_BYTE / WORD_OUTCOMES + (size_t)(end_of_targets - targets) + 4;
  log->words = make_room(e, log->words, log->nwords, need, &log->room, sizeof *log->words);
  struct bits b = {log->stream, log->stream, 0, 0, 0};
  unsigned pending = outcomes_in(log->outcomes);
  add_bits(&b, log->outcomes ^ (uint64_t)1 << pending, pending);
  while (p > end) {
    if (log->extracts) p = add_groups(&b, p, end);
    if (p == end) break;
    uint8_t byte = *p--;
    if (byte) {
      unsigned n = outcomes_in(byte);
      add_bits(&b, byte ^ 1u << n, n);
    } else {
      add_target_word(e, &b, targets);
      targets += 2;
    }
  }
  write_bits(log, &b);
  log->branches += b.added - pending;
}

// ---- draining ------------------------------------------------------------------------------------

// Passes records of accesses to the consumer, if nothing else is logged, up to one that it does not take as a whole:
// log->skip is what it has taken of that. Returns that record.
static const uint64_t *pass_records(struct direct_engine *e, const uint64_t *p, const uint64_t *end) {
  struct direct_log *log = &e->log;
  struct heddle_mem_consumer *c = direct_log_consumer(log);
  if (!c || log->skip || log->what & (LOG_BRANCHES | LOG_INSTRUCTIONS)) return p;
  const struct direct_record *records = e->blocks->records;
  const struct heddle_mem_access *accesses = e->blocks->accesses;
  uint64_t branches = log->branches;
  direct_float_park(e);
  while (p < end && !c->held) {
    const struct direct_record *r = &records[record_exit(*p)];
    if (is_indirect(r) && !is_canonical(p[record_words(*p) - 1])) break;
    if (r->accesses) {
      size_t taken = c->take_accesses(c, &accesses[r->access], r->accesses, p, (uint32_t)branches);
      if (taken < r->accesses) {
        log->skip = (unsigned)taken;
        break;
      }
    }
    branches += r->branches;
    p += record_words(*p);
  }
  log->branches = branches;
  return p;
}

// Makes entries of the records up to end, and empties the raw log. The time of a record is the run's
// before the translated code was entered and what that has used of its grant. A branch to an
// address that is not canonical is undone (blocks.c).
void direct_log_drain(struct direct_engine *e, const uint64_t *end) {
  struct direct_log *log = &e->log;
  log->branches += e->context->branches;
  e->context->branches = 0;
  if (!log_is_raw(log)) return;
  if (log_collects(log)) {
    write_collected(e, end);
    return;
  }
  uint64_t base = direct_cycles_now(e) + (uint64_t)log->granted;
  const uint64_t *p = pass_records(e, log->from, end);
  for (; p < end; p = pass_records(e, p, end)) {
    const struct direct_record *r = &e->blocks->records[record_exit(*p)];
    uint64_t target = is_indirect(r) ? p[record_words(*p) - 1] : 0;
    bool retired = is_canonical(target);
    if (log->what & LOG_MEMORY)
      direct_log_accesses(e, r->access, log->skip, retired ? r->accesses : r->accesses_before, p);
    log->branches += r->branches - (unsigned)!retired;
    if (log->what & LOG_BRANCHES) add_record(e, r, target, retired, base - (uint64_t)(int64_t)(int32_t)(*p >> 32));
    add_instructions(e, r->place, r->places - (unsigned)!retired);
    p += record_words(*p);
    log->skip = 0;
  }
  log->from = p;
}

// Logs that part of a block which is before a point, after the records have been drained.
void direct_log_part(struct direct_engine *e, const struct direct_point *p, const uint64_t *record) {
  struct direct_log *log = &e->log;
  if (log->what & LOG_MEMORY)
    direct_log_accesses(e, e->blocks->all[p->block].first_access, log->skip, p->accesses, record);
  log->skip = 0;
  log->branches += p->branches + e->context->branches;
  e->context->branches = 0;
  if (!log_is_raw(log)) return;
  const struct direct_block *b = &e->blocks->all[p->block];
  uint64_t entered = direct_cycles_now(e) + (uint64_t)(log->granted - (e->context->budget >> 32));
  if (log->what & LOG_BRANCHES) add_events(e, b->first_event, p->events, entered);
  add_instructions(e, b->first_place, p->count);
}

// Translated code is about to be entered with a number of cycles.
void direct_log_begin(struct direct_engine *e, int64_t granted) {
  e->log.granted = granted < 0 ? 0 : granted;
  e->context->log = e->log.raw;
  e->log.from = e->log.raw;
  e->log.skip = 0;
  e->context->leave = log_has_register(&e->log) ? direct_leave_logged : direct_leave;
}

// The cycles for which the raw log has room.
int64_t direct_log_room(const struct direct_engine *e) {
  if (log_collects(&e->log)) return UINT16_MAX - BLOCK_COST;
  return log_is_raw(&e->log) ? (int64_t)(RAW_WORDS / e->log.ratio) - BLOCK_COST : INT64_MAX;
}

// ---- units -----------------------------------------------------------------------------------------

// Logs an instruction that has retired.
void direct_log_unit(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_log *log = &e->log;
  uint64_t pc = e->context->rip, end = in->pc + in->length;
  bool again = in->kind == KIND_REP && pc == in->pc;
  log->branches += in->kind == KIND_COND || in->kind == KIND_JUMP || in->kind == KIND_CALL_IND || in->kind == KIND_RET;
  if (log->what & LOG_BRANCHES) add_branch(e, in->kind, end, pc, direct_cycles_now(e));
  if (!(log->what & LOG_INSTRUCTIONS) || again) return;
  log->instructions = make_room(e, log->instructions, log->ninstructions, 1, &log->instructions_room, sizeof *log->instructions);
  log->instructions[log->ninstructions++] = in->pc;
}

// ---- code --------------------------------------------------------------------------------------------

static void add_code(struct direct_engine *e, uint64_t pc, uint64_t size) {
  struct direct_log *log = &e->log;
  uint32_t phys[2];
  log->code = make_room(e, log->code, log->ncode, 1, &log->code_room, sizeof *log->code);
  log->bytes = make_room(e, log->bytes, log->nbytes, size, &log->bytes_room, 1);
  size_t n = direct_fetch(e, pc, log->bytes + log->nbytes, size, phys);
  uint64_t at = direct_instructions_now(e) - e->repeated;
  log->code[log->ncode++] = (struct direct_code_entry){pc, at, (uint32_t)n, (uint32_t)log->nbytes};
  log->nbytes += n;
}

static bool is_before(const struct direct_place *places, unsigned n, uint64_t pc) {
  for (unsigned i = 0; i < n; i++)
    if (places[i].pc == pc) return true;
  return false;
}

// Logs the code of a block that is about to run in the loaded space for the first time.
void direct_log_block_code(struct direct_engine *e, const struct direct_block *b) {
  const struct direct_place *places = &e->blocks->places[b->first_place];
  if (!(e->log.what & LOG_BRANCHES)) return;
  for (unsigned i = 0; i < b->n;) {
    uint64_t pc = places[i].pc, end = pc;
    bool known = is_before(places, i, pc);
    for (; i < b->n && places[i].pc == end && is_before(places, i, end) == known; i++) end += places[i].length;
    if (!known) add_code(e, pc, end - pc);
  }
}

// The same for a unit.
void direct_log_unit_code(struct direct_engine *e, struct direct_unit *u) {
  if (!(e->log.what & LOG_BRANCHES) || u->logged == e->space->code) return;
  u->logged = e->space->code;
  add_code(e, u->in.pc, u->in.length ? u->in.length : 1);
}
