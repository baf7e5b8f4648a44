// The log of accesses to memory.
#include "general.h"

#include "block.h"

#include <stdlib.h>

static size_t accesses_bytes(void) { return REGIONS * REGION_ACCESSES * sizeof(struct heddle_mem_access); }

bool direct_memory_log_open(struct direct_engine *e) {
  if (!(e->log.what & LOG_MEMORY) || e->blocks->accesses) return true;
  e->blocks->accesses = heddle_reserve(accesses_bytes());
  return e->blocks->accesses;
}

// While a thread runs, memory changes by buffers of stores alone, which the running core does not see.
static bool is_own(void *engine, uint64_t va, const void *bytes, size_t n) {
  (void)va, (void)bytes, (void)n;
  return ((struct direct_engine *)engine)->log.running;
}

// Starts the log of loads and stores.
int direct_log_memory(struct direct_engine *e, const struct heddle_mem_range *data, size_t ndata,
                      const struct heddle_mem_range *code, size_t ncode, bool partial) {
  struct heddle_mem_core *memory = &e->log.memory;
  if (memory->on || direct_log_start(e, LOG_MEMORY)) return -1;
  memory->is_own = is_own;
  memory->late = e->has_run;  // other threads have used pages
  memory->engine = e;
  return heddle_mem_core_open(memory, e->ram, data, ndata, code, ncode, partial) ? 0 : -1;
}

void direct_memory_log_close(struct direct_engine *e) {
  heddle_mem_core_close(&e->log.memory);
  if (e->blocks) heddle_unreserve(e->blocks->accesses, accesses_bytes());
}

// ---- entries -----------------------------------------------------------------------------------------

static uint64_t low_bytes(uint64_t value, unsigned n) { return n >= 8 ? value : value & (((uint64_t)1 << 8 * n) - 1); }

// Makes room for n entries and those of one more access.
static void make_entries_room(struct direct_engine *e, size_t n) {
  struct heddle_mem_buffer *b = e->log.memory.to;
  if (__builtin_expect(b->n + n + 16 <= b->room, 1)) return;
  direct_float_park(e);
  b->room *= 2;
  b->entries = realloc(b->entries, b->room * sizeof *b->entries);
  if (!b->entries) abort();
}

// An access of more than 16 bytes has entries for each 16.
static void add_entries(struct direct_engine *e, uint64_t va, const uint64_t *values, unsigned size, struct heddle_mem_entry entry) {
  struct heddle_mem_buffer *b = e->log.memory.to;
  make_entries_room(e, 0);
  for (unsigned at = 0; at < size; at += 8) {
    struct heddle_mem_entry *to = &b->entries[b->n++];
    unsigned left = size - at;
    *to = entry;
    to->addr = va + at;
    to->value = low_bytes(values[at / 8], left);
    if (at & 8) {
      to->kind = HEDDLE_MEM_HIGH;
      to->size = (uint16_t)(left < 8 ? left : 8);
    } else {
      to->size = (uint16_t)(left < 16 ? left : 16);
    }
  }
  if (b->n >= HEDDLE_MEM_FULL) e->log.memory.full = true;
}

// Logs an access of a block that is selected, or has more than 8 bytes.
static __attribute__((noinline)) void add_selected(struct direct_engine *e, const struct heddle_mem_access *a, uint64_t va,
                                                   const uint64_t *record) {
  uint64_t constant = (uint64_t)a->value;
  if (!heddle_mem_selects(&e->log.memory, va, a->size, a->pc)) return;
  add_entries(e, va, a->value_word ? &record[a->value_word] : &constant, a->size, (struct heddle_mem_entry){
      .pc = a->pc, .branches = (uint32_t)e->log.branches + a->branches, .kind = a->store ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD});
}

// Has the consumer take a block's accesses, if there is one. Returns how many it has taken.
static size_t consume(struct direct_engine *e, const struct heddle_mem_access *a, size_t n, const uint64_t *record) {
  struct heddle_mem_core *memory = &e->log.memory;
  if (!memory->consumer || memory->consumer->held || memory->selective || !n) return 0;
  direct_float_park(e);
  return heddle_mem_consume(memory, a, n, record, (uint32_t)e->log.branches);
}

// The consumer, if it takes accesses as they are and none is in the buffer.
struct heddle_mem_consumer *direct_log_consumer(const struct direct_log *log) {
  const struct heddle_mem_core *memory = &log->memory;
  bool passes = memory->consumer && !memory->muted && !memory->selective && !memory->to->n && memory->consumer->era == memory->era;
  return passes ? memory->consumer : NULL;
}

// Logs some of a block's accesses, with their words. The fields of an entry are written to where it
// stays: a copy would be read in other pieces than it was written in, which processors are slow at.
void direct_log_accesses(struct direct_engine *e, uint32_t first, unsigned from, unsigned upto, const uint64_t *record) {
  static const uint64_t masks[9] = {0, 0xff, 0xffff, 0xffffff, UINT32_MAX, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX};
  struct direct_log *log = &e->log;
  struct heddle_mem_buffer *b = log->memory.to;
  uint32_t branches = (uint32_t)log->branches;
  if (log->memory.muted) return;
  make_entries_room(e, upto - from);
  const struct heddle_mem_access *a = &e->blocks->accesses[first + from], *end = a + (upto - from);
  for (a += consume(e, a, upto - from, record); a < end; a++) {
    uint64_t va = a->at + (a->address_word ? record[a->address_word] : 0);
    if (__builtin_expect(a->size > 8 || log->memory.selective, 0)) {
      add_selected(e, a, va, record);
      a += consume(e, a + 1, (size_t)(end - a) - 1, record);
      continue;
    }
    struct heddle_mem_entry *to = &b->entries[b->n++];
    to->addr = va;
    to->value = (a->value_word ? record[a->value_word] : (uint64_t)a->value) & masks[a->size];
    to->pc = a->pc;
    to->branches = branches + a->branches;
    to->size = a->size;
    to->kind = a->store ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD;
    to->flags = 0;
  }
  if (b->n >= HEDDLE_MEM_FULL) log->memory.full = true;
}

// ---- units ---------------------------------------------------------------------------------------------

// A unit is about to be executed.
void direct_memory_log_begin(struct direct_engine *e, const struct direct_insn *in) {
  if (e->log.memory.on) e->log.memory.start = e->log.memory.to->n;
  e->log.physical_start = e->log.physical ? e->log.physical->count : 0;
  e->log.unit = in;
}

// Reports whether the instruction may complete in several attempts.
static bool is_gather(const struct direct_insn *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_VGATHERDPS:
    case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VGATHERQPS:
    case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPGATHERDD:
    case ZYDIS_MNEMONIC_VPGATHERDQ:
    case ZYDIS_MNEMONIC_VPGATHERQD:
    case ZYDIS_MNEMONIC_VPGATHERQQ:
      return true;
    default:
      return false;
  }
}

// It has not retired.
void direct_memory_log_undo(struct direct_engine *e, const struct direct_insn *in) {
  if (is_gather(in)) return;
  direct_float_park(e);
  heddle_mem_undo(&e->log.memory);
  if (e->log.physical) e->log.physical->count = e->log.physical_start;
}

// Starts or ends the log of accesses by physical address.
void direct_log_physical(struct direct_engine *e, struct direct_physical_log *log) {
  e->log.physical = log;
  if (log) e->log.what |= LOG_PHYSICAL;
  else e->log.what &= ~LOG_PHYSICAL;
}

static void add_physical(struct direct_engine *e, uint64_t va, size_t n, bool store) {
  struct direct_physical_log *log = e->log.physical;
  for (size_t part; n; va += part, n -= part) {
    size_t room = HEDDLE_PAGE_SIZE - offset_of(va);
    part = n < room ? n : room;
    const uint8_t *memory = direct_locate(e, va, store ? HEDDLE_WRITE : HEDDLE_READ);
    if (log->count < PHYSICALS) log->entries[log->count] = (struct direct_physical){(uint64_t)(memory - e->ram->base), (uint32_t)part, store};
    log->count++;
  }
}

// Logs an access of n bytes by the unit that is executed.
void direct_log_access(struct direct_engine *e, uint64_t va, const void *bytes, size_t n, bool store) {
  struct direct_log *log = &e->log;
  const struct direct_insn *in = log->unit;
  uint64_t words[8] = {0};
  if (!in) return;
  if (log->physical) add_physical(e, va, n, store);
  if (!log->memory.on || log->memory.muted) return;
  for (size_t at = 0; at < n; at += sizeof words) {
    size_t part = n - at < sizeof words ? n - at : sizeof words;
    copy_bytes(words, (const uint8_t *)bytes + at, part);
    if (!heddle_mem_selects(&log->memory, va + at, part, in->pc)) continue;
    add_entries(e, va + at, words, (unsigned)part, (struct heddle_mem_entry){
        .pc = in->pc, .branches = (uint32_t)log->branches, .kind = store ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD,
        .flags = in->what & INSN_ATOMIC ? HEDDLE_MEM_ATOMIC : 0});
  }
}

// ---- pages ------------------------------------------------------------------------------------------------

// A run begins: the log has the mapping of each page again that is accessed in another space than
// before, or whose content is not known any more.
void direct_memory_log_run(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  if (log->bank == e->bank && !log->memory.flush) return;
  direct_bank_flush(e->bank);
  log->bank = e->bank;
  log->memory.flush = false;
}

// Logs all that has been executed, a part of a block included: a page is about to be supplied.
void direct_memory_log_sync(struct direct_engine *e) {
  struct direct_log *log = &e->log;
  const struct direct_point *p = log->point;
  if (!p) return;
  direct_log_drain(e, log->record);
  direct_log_accesses(e, e->blocks->all[p->block].first_access, log->skip, p->accesses, log->record);
  log->skip = p->accesses;
}

// A page has been found for accesses at va.
void direct_memory_log_fill(struct direct_engine *e, uint64_t va, uint64_t page) {
  heddle_mem_content(&e->log.memory, page, page_of(va));
  heddle_mem_map(&e->log.memory, page, page_of(va));
}
