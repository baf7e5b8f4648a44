// The log of accesses to memory.
#include "general.h"

#include "block.h"

#include <stdlib.h>

static size_t accesses_bytes(void) { return REGIONS * REGION_ACCESSES * sizeof(struct direct_access); }

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
  memory->engine = e;
  return heddle_mem_core_open(memory, e->ram, data, ndata, code, ncode, partial) ? 0 : -1;
}

void direct_memory_log_close(struct direct_engine *e) {
  heddle_mem_core_close(&e->log.memory);
  if (e->blocks) heddle_unreserve(e->blocks->accesses, accesses_bytes());
}

// ---- entries -----------------------------------------------------------------------------------------

static uint64_t low_bytes(uint64_t value, unsigned n) { return n >= 8 ? value : value & (((uint64_t)1 << 8 * n) - 1); }

// Makes room for the entries of an access.
static void make_entries_room(struct direct_engine *e) {
  struct heddle_mem_buffer *b = e->log.memory.to;
  if (__builtin_expect(b->n + 16 <= b->room, 1)) return;
  direct_float_park(e);
  b->room *= 2;
  b->entries = realloc(b->entries, b->room * sizeof *b->entries);
  if (!b->entries) abort();
}

// An access of more than 16 bytes has entries for each 16.
static void add_entries(struct direct_engine *e, uint64_t va, const uint64_t *values, unsigned size, struct heddle_mem_entry entry) {
  struct heddle_mem_buffer *b = e->log.memory.to;
  make_entries_room(e);
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

// Logs some of a block's accesses, with their words.
void direct_log_accesses(struct direct_engine *e, uint32_t first, unsigned from, unsigned upto, const uint64_t *record) {
  struct direct_log *log = &e->log;
  uint32_t branches = (uint32_t)log->branches;
  if (log->memory.muted) return;
  for (unsigned i = from; i < upto; i++) {
    const struct direct_access *a = &e->blocks->accesses[first + i];
    uint64_t va = a->at + (a->address_word ? record[a->address_word] : 0), constant = (uint64_t)a->value;
    if (!heddle_mem_selects(&log->memory, va, a->size, a->pc)) continue;
    const uint64_t *values = a->value_word ? &record[a->value_word] : &constant;
    struct heddle_mem_entry entry = {
        .addr = va, .value = values[0], .pc = a->pc, .branches = branches + a->branches, .size = a->size,
        .kind = a->store ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD};
    struct heddle_mem_buffer *b = log->memory.to;
    if (a->size > 8 || b->n + 16 > b->room) {
      add_entries(e, va, values, a->size, entry);
      continue;
    }
    entry.value = low_bytes(entry.value, a->size);
    b->entries[b->n++] = entry;
  }
  if (log->memory.to->n >= HEDDLE_MEM_FULL) log->memory.full = true;
}

// ---- units ---------------------------------------------------------------------------------------------

// A unit is about to be executed.
void direct_memory_log_begin(struct direct_engine *e, const struct direct_insn *in) {
  e->log.memory.start = e->log.memory.to->n;
  e->log.unit = in;
}

// Reports whether the instruction may complete in several attempts.
static bool is_gather(const struct direct_insn *in) {
  return in->mnemonic >= ZYDIS_MNEMONIC_VGATHERDPD && in->mnemonic <= ZYDIS_MNEMONIC_VPGATHERQQ && in->class == CLASS_EMULATED;
}

// It has not retired.
void direct_memory_log_undo(struct direct_engine *e, const struct direct_insn *in) {
  if (is_gather(in)) return;
  direct_float_park(e);
  heddle_mem_undo(&e->log.memory);
}

// Logs an access of n bytes by the unit that is executed.
void direct_log_access(struct direct_engine *e, uint64_t va, const void *bytes, size_t n, bool store) {
  struct direct_log *log = &e->log;
  const struct direct_insn *in = log->unit;
  uint64_t words[8] = {0};
  if (!in || log->memory.muted) return;
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
