#include "general.h"

#include "block.h"

#include <stdlib.h>

// ---- opening -------------------------------------------------------------------------------

static uint32_t raw_words(const struct direct_log *log) { return log_collects(log) ? RAW_WORDS_COLLECTED : RAW_WORDS; }
static size_t raw_bytes(void) { return (RAW_WORDS_COLLECTED + RECORD_WORDS) * sizeof(uint64_t); }
static size_t records_bytes(void) { return (REGIONS * REGION_EXITS + 1) * sizeof(struct direct_record); }
static size_t events_bytes(void) { return REGIONS * REGION_EVENTS * sizeof(struct direct_event); }
static size_t places_bytes(void) { return REGIONS * REGION_PLACES * sizeof(struct direct_place); }

static bool open_raw(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  struct direct_blocks *a = e->blocks;
  if (!log_is_raw(log) || log->raw) return true;
  log->ratio = 1;
  log->raw = heddle_reserve(raw_bytes());
  a->records = heddle_reserve(records_bytes());
  a->events = heddle_reserve(events_bytes());
  a->places = heddle_reserve(places_bytes());
  return log->raw && a->records && a->events && a->places;
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

// Starts logs. -1: the engine has run, or there is no memory.
int direct_log_start(struct direct_engine *e, uint32_t what) {
  struct direct_log *log = &e->log;
  if (log->has_run) return -1;
  log->what |= what;
  log->outcomes = 1;
  log->outcomes_full = (uint64_t)1 << (log->what & LOG_TIMED ? WORD_OUTCOMES_TIMED : WORD_OUTCOMES);
  return open_raw(e) && direct_memory_log_open(e) ? 0 : -1;
}

void direct_log_close(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  heddle_unreserve(log->raw, raw_bytes());
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

struct writer {
  uint64_t *at;
  uint64_t outcomes;
};

static inline void write_word(struct writer *w, uint64_t tag, uint64_t payload) { *w->at++ = tag << WORD_TAG_SHIFT | payload; }

static inline void write_outcomes(struct writer *w) {
  uint64_t n = outcomes_in(w->outcomes);
  *w->at = (uint64_t)WORD_TNT << WORD_TAG_SHIFT | n << 48 | (w->outcomes ^ (uint64_t)1 << n);
  w->at += n != 0;
  w->outcomes = 1;
}

// Adds the outcomes of a word, less than 48 after a leading 1. Returns how many. The result is written whether it
// is full or not: a branch would be mispredicted.
static inline unsigned join_outcomes(struct writer *w, uint64_t word) {
  unsigned n = outcomes_in(word), room = WORD_OUTCOMES - outcomes_in(w->outcomes), fit = n < room ? n : room, rest = n - fit;
  uint64_t bits = word ^ (uint64_t)1 << n, below = (uint64_t)1 << rest;
  uint64_t joined = w->outcomes << fit | bits >> rest;
  *w->at = (uint64_t)WORD_TNT << WORD_TAG_SHIFT | (uint64_t)WORD_OUTCOMES << 48 | (joined ^ (uint64_t)1 << WORD_OUTCOMES);
  w->at += fit == room;
  w->outcomes = fit == room ? below | (bits & (below - 1)) : joined;
  return n;
}

// Adds outcomes and the targets of indirect branches. A target that is not canonical is none.
static void write_collected(struct direct_engine *e, const uint64_t *end) {
  struct direct_log *log = &e->log;
  size_t need = 2 * (size_t)(end - log->raw) + 2;  // a word of outcomes may complete one and begin another
  log->words = make_room(e, log->words, log->nwords, need, &log->room, sizeof *log->words);
  struct writer w = {log->words + log->nwords, log->outcomes};
  for (const uint64_t *p = log->raw; p < end;) {
    if (!is_record(*p)) {
      log->branches += join_outcomes(&w, *p++);
      continue;
    }
    const struct direct_record *r = &e->blocks->records[record_exit(*p)];
    p += record_words(*p);
    if (!is_canonical(p[-1])) continue;
    write_outcomes(&w);
    write_word(&w, r->kind == KIND_RET ? WORD_RET : WORD_TIP, p[-1]);
    log->branches++;
  }
  log->branches += join_outcomes(&w, e->context->outcomes);
  e->context->outcomes = 1;
  log->nwords = (size_t)(w.at - log->words);
  log->outcomes = w.outcomes;
}

// ---- draining ------------------------------------------------------------------------------------

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
  const uint64_t *p = log->from;
  for (; p < end; log->skip = 0) {
    const struct direct_record *r = &e->blocks->records[record_exit(*p)];
    uint64_t target = is_indirect(r) ? p[record_words(*p) - 1] : 0;
    bool retired = is_canonical(target);
    if (log->what & LOG_MEMORY)
      direct_log_accesses(e, r->access, log->skip, retired ? r->accesses : r->accesses_before, p);
    log->branches += r->branches - (unsigned)!retired;
    if (log->what & LOG_BRANCHES) add_record(e, r, target, retired, base - (uint64_t)(int64_t)(int32_t)(*p >> 32));
    add_instructions(e, r->place, r->places - (unsigned)!retired);
    p += record_words(*p);
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
  e->context->outcomes = 1;
  e->context->leave = log_has_register(&e->log) ? direct_leave_logged : direct_leave;
}

// The cycles for which the raw log has room.
int64_t direct_log_room(const struct direct_engine *e) {
  return log_is_raw(&e->log) ? (int64_t)(raw_words(&e->log) / e->log.ratio) - BLOCK_COST : INT64_MAX;
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
