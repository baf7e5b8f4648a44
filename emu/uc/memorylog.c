#include "memorylog.h"

#include <stdlib.h>
#include <string.h>

#include "run.h"

#define WIDE 2u  // an operand of 10 or 16 bytes, which the engine accesses in two parts

// ---- loads and stores -------------------------------------------------------

// Decodes the running instruction for its slot in sites.
static uint64_t decode_site(struct heddle_mem_log *log, struct heddle_mem_site *site, uint64_t number) {
  struct heddle_cpu *cpu = log->cpu;
  uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
  ZydisDecoderContext context;
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  size_t len = heddle_space_code(cpu->space, log->pc, code, sizeof code);
  uint64_t facts = number;
  if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&cpu->decoder, &context, code, len, &in)) &&
      ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&cpu->decoder, &context, &in, operands, in.operand_count))) {
    if (heddle_is_atomic(&in)) facts |= HEDDLE_MEM_ATOMIC;
    for (unsigned i = 0; i < in.operand_count; i++)
      if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && (operands[i].size == 80 || operands[i].size == 128))
        facts |= WIDE;
  }
  *site = (struct heddle_mem_site){log->pc, facts};
  return facts;
}

static inline uint64_t site_facts(struct heddle_mem_log *log) {
  struct heddle_mem_site *site = &log->sites[log->pc & (HEDDLE_MEM_SITES - 1)];
  uint64_t number = log->cpu->space->code << 2;
  if (__builtin_expect(site->pc == log->pc && (site->facts ^ number) < 4, 1)) return site->facts;
  return decode_site(log, site, number);
}

// The code at these addresses may have changed.
void heddle_mem_translated(struct heddle_mem_log *log, uint64_t pc, uint32_t size) {
  for (uint64_t at = pc; at < pc + size; at++) {
    struct heddle_mem_site *site = &log->sites[at & (HEDDLE_MEM_SITES - 1)];
    if (site->pc == at) site->pc = 0;
  }
}

// Returns the address of a load that lies in two pages; the engine reports it after it has
// translated the second. If both are the same page, that is known by its second address now.
// (Otherwise the engine asked for the second page last.)
static uint64_t address_across(const struct heddle_mem_log *log, uint64_t page) {
  bool same = log->last_page == page && log->last_start == log->core.start &&
      log->va[page] == log->last_was + HEDDLE_PAGE_SIZE;
  return same ? log->last_was : log->va[page];
}

static void on_access(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *user) {
  (void)uc;
  struct heddle_mem_log *log = user;
  if (log->core.muted) return;
  uint64_t page = address >> HEDDLE_PAGE_SHIFT, va = log->va[page], offset = address & (HEDDLE_PAGE_SIZE - 1);
  if (__builtin_expect(offset + (unsigned)size > HEDDLE_PAGE_SIZE, 0) && type != UC_MEM_WRITE)
    va = address_across(log, page);
  va |= offset;
  if (!heddle_mem_selects(&log->core, va, (unsigned)size, log->pc))
    return;
  uint64_t facts = site_facts(log);
  struct heddle_mem_buffer *to = log->core.to;
  struct heddle_mem_entry *e = &to->entries[to->n];
  uint8_t kind = type == UC_MEM_WRITE ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD;
  e->addr = va;
  e->value = size == 8 ? (uint64_t)value : (uint64_t)value & (((uint64_t)1 << 8 * size) - 1);
  e->pc = log->pc;
  e->branches = (uint32_t)heddle_cpu_branches_now(log->cpu);
  e->size = (uint16_t)size;
  e->kind = kind;
  e->flags = (uint8_t)(facts & HEDDLE_MEM_ATOMIC);
  if (__builtin_expect(facts & WIDE, 0) && to->n > log->core.start && e[-1].kind == kind && e[-1].size == 8 &&
      e[-1].addr + 8 == va) {
    e[-1].size = (uint16_t)(8 + size);
    e->kind = HEDDLE_MEM_HIGH;
  }
  if (__builtin_expect(++to->n >= HEDDLE_MEM_FULL, 0)) heddle_mem_note_full(&log->core);
}

static void on_code(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  (void)size;
  struct heddle_mem_log *log = user;
  log->pc = pc;
  log->core.start = log->core.to->n;
}

// The running instruction has stored n zeros, at most 8, which the engine has not reported.
void heddle_mem_add_store(struct heddle_mem_log *log, uint64_t va, size_t n) {
  if (!log->core.on || log->core.muted || !heddle_mem_selects(&log->core, va, n, log->pc)) return;
  struct heddle_mem_entry *e = heddle_mem_add(&log->core, HEDDLE_MEM_STORE);
  e->addr = va;
  e->pc = log->pc;
  e->branches = (uint32_t)heddle_cpu_branches_now(log->cpu);
  e->size = (uint16_t)n;
}

// Reports whether the value that the entry stored is in memory.
static bool is_stored(const struct heddle_mem_log *log, const struct heddle_mem_entry *e) {
  uint64_t pte = heddle_space_get(log->cpu->space, e->addr), offset = e->addr & (HEDDLE_PAGE_SIZE - 1);
  unsigned size = e->size < 8 ? e->size : 8;
  if (offset + size > HEDDLE_PAGE_SIZE) size = (unsigned)(HEDDLE_PAGE_SIZE - offset);
  const uint8_t *page = log->cpu->ram->base + (pte & ~(HEDDLE_PAGE_SIZE - 1));
  return !memcmp(page + offset, &e->value, size);
}

static bool repeats_or_calls(struct heddle_mem_log *log) {
  ZydisDecodedInstruction in;
  if (!heddle_decode(log->cpu, log->pc, &in)) return false;
  enum heddle_kind kind = heddle_kind_of(&in);
  return kind == HEDDLE_KIND_REP || kind == HEDDLE_KIND_CALL || kind == HEDDLE_KIND_CALL_IND;
}

// Adds the second half of a wide store that the engine does not report.
static void complete_wide_store(struct heddle_mem_log *log, struct heddle_mem_entry *e) {
  if (e->kind != HEDDLE_MEM_STORE || e->size != 8 || !(site_facts(log) & WIDE)) return;
  uint64_t addr = e->addr + 8, pc = e->pc;
  e->size = 16;
  e = heddle_mem_add(&log->core, HEDDLE_MEM_HIGH);
  e->addr = addr;
  e->pc = pc;
  e->size = 8;
  size_t done;
  heddle_space_read(log->cpu->space, addr, &e->value, 8, &done);
}

// The last instruction is about to run again. The reason may be that it stores into its own block:
// then the engine translates the block again before anything is stored. If the store is unaligned,
// the engine then takes later accesses for parts of it, and reports no accesses until it is
// restarted.
void heddle_mem_retry(struct heddle_mem_log *log) {
  struct heddle_mem_buffer *b = log->core.to;
  struct heddle_mem_entry *e = b->entries + b->n;
  do {
    if (e == b->entries + log->core.start) return;
    e--;
  } while (e->kind != HEDDLE_MEM_STORE && e->kind != HEDDLE_MEM_HIGH);
  uint64_t page = heddle_space_get(log->cpu->space, e->addr) >> HEDDLE_PAGE_SHIFT;
  if (!(log->cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) return;
  if (is_stored(log, e) && repeats_or_calls(log)) return;
  if (e->addr & ((e->size < 8 ? e->size : 8) - 1)) log->hooks_lost = true;
  else heddle_mem_undo(&log->core);
}

// The engine is restarted at the block after an instruction whose accesses it did not report.
void heddle_mem_hooks_regained(struct heddle_mem_log *log) {
  if (!log->hooks_lost) return;
  log->hooks_lost = false;
  if (log->core.to->n > log->core.start) complete_wide_store(log, &log->core.to->entries[log->core.to->n - 1]);
}

// ---- pages ------------------------------------------------------------------

// Removes the last access of the running instruction from the log: the engine may ask for the
// access's second page after it has reported the access.
static size_t pop_last_access(struct heddle_mem_log *log, struct heddle_mem_entry *out) {
  struct heddle_mem_buffer *b = log->core.to;
  if (b->n == log->core.start || !heddle_mem_is_access(&b->entries[b->n - 1])) return 0;
  size_t n = b->entries[b->n - 1].kind == HEDDLE_MEM_HIGH ? 2 : 1;
  b->n -= n;
  memcpy(out, &b->entries[b->n], n * sizeof *out);
  return n;
}

// The engine is about to be given the translation of va to a page. It reports accesses by physical
// address only. For the virtual address to be known, the engine may have no other translation of
// the page, except for fetching.
void heddle_mem_filled(struct heddle_mem_log *log, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms) {
  va &= ~(HEDDLE_PAGE_SIZE - 1);
  bool live = log->filled[page] == log->epoch;
  if (type == UC_MEM_FETCH) {
    if (!live || log->va[page] != va) *perms &= UC_PROT_EXEC;
    return;
  }
  log->last_page = page;
  log->last_start = log->core.start;
  log->last_was = 0;
  if (live && log->va[page] != va) {
    log->last_was = log->va[page];
    uc_ctl_flush_tlb(log->cpu->engine.uc);
    log->epoch++;
  }
  log->va[page] = va;
  log->filled[page] = log->epoch;
  struct heddle_mem_entry last[2];
  size_t n = pop_last_access(log, last);
  heddle_mem_content(&log->core, page, va);
  heddle_mem_map(&log->core, page, va);
  for (size_t i = 0; i < n; i++) *heddle_mem_add(&log->core, 0) = last[i];
}

// ---- changes that the guest does not make -----------------------------------

static bool is_running(const struct heddle_mem_log *log) { return log->cpu->run.state != HEDDLE_STATE_IDLE; }

// Corrects the entries of an instruction that was executed alone and stored something other than
// the engine reported.
static void correct_stores(struct heddle_mem_log *log, uint64_t va, const uint8_t *bytes, size_t n) {
  struct heddle_mem_buffer *b = log->core.to;
  for (size_t i = log->core.start; i < b->n; i++) {
    struct heddle_mem_entry *e = &b->entries[i];
    if (e->kind != HEDDLE_MEM_STORE && e->kind != HEDDLE_MEM_HIGH) continue;
    for (unsigned k = 0; k < (e->size < 8 ? e->size : 8); k++) {
      uint64_t at = e->addr + k - va;
      if (at < n) e->value = (e->value & ~((uint64_t)0xff << 8 * k)) | (uint64_t)bytes[at] << 8 * k;
    }
  }
}

// Reports whether the run accesses memory, with the entries of a store corrected.
static bool is_own(void *engine, uint64_t va, const void *bytes, size_t n) {
  struct heddle_mem_log *log = engine;
  if (is_running(log) && bytes) correct_stores(log, va, bytes, n);
  return is_running(log);
}

// ---- initialization ---------------------------------------------------------

// Starts to log. No run executes, as for the log of branches.
int heddle_mem_open(struct heddle_cpu *cpu, const struct heddle_mem_range *data, size_t ndata,
                    const struct heddle_mem_range *code, size_t ncode, bool partial) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  uint64_t pages = cpu->ram->pages;
  if (log->core.on) return UC_ERR_ARG;
  log->cpu = cpu;
  log->core.engine = log;
  log->core.is_own = is_own;
  log->core.late = cpu->engine.has_run;  // other threads have used pages
  log->sites = calloc(HEDDLE_MEM_SITES, sizeof *log->sites);
  log->va = heddle_reserve(pages * sizeof *log->va);
  log->filled = heddle_reserve(pages * sizeof *log->filled);
  if (!log->sites || !log->va || !log->filled) return UC_ERR_NOMEM;
  if (!heddle_mem_core_open(&log->core, cpu->ram, data, ndata, code, ncode, partial)) return UC_ERR_NOMEM;
  log->epoch = 1;
  log->core.flush = cpu->engine.has_run;  // the addresses of pages are known when the engine asks for them
  int err = heddle_cpu_count_branches(cpu);
  if (!err)
    err = uc_hook_add(cpu->engine.uc, &log->hooks[0], UC_HOOK_CODE, (void *)on_code, log, (uint64_t)1, (uint64_t)0);
  if (!err)
    err = uc_hook_add(cpu->engine.uc, &log->hooks[1], UC_HOOK_MEM_READ_AFTER, (void *)on_access, log, (uint64_t)1,
                      (uint64_t)0);
  if (!err)
    err = uc_hook_add(cpu->engine.uc, &log->hooks[2], UC_HOOK_MEM_WRITE, (void *)on_access, log, (uint64_t)1,
                      (uint64_t)0);
  return err;
}

// Ends the logs of branches and of accesses. The hooks stay: without those of accesses the engine would leave blocks
// elsewhere than before.
void heddle_cpu_end_logs(struct heddle_cpu *cpu) {
  cpu->logs.flow.on = cpu->logs.flow.timed = false;
  cpu->logs.flow.nwords = cpu->logs.flow.ncode = cpu->logs.flow.nbytes = 0;
  cpu->logs.memory.ended = cpu->logs.memory.core.muted = cpu->logs.memory.core.on;
  heddle_mem_drop_ended(&cpu->logs.memory);
}

// Empties a log that has ended.
void heddle_mem_drop_ended(struct heddle_mem_log *log) {
  if (!log->ended) return;
  log->core.to->n = log->core.to->nbytes = log->core.start = 0;
  log->core.full = false;
}

void heddle_mem_close(struct heddle_cpu *cpu) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  for (int i = 0; i < 3; i++)
    if (log->hooks[i]) uc_hook_del(cpu->engine.uc, log->hooks[i]);
  free(log->sites);
  heddle_unreserve(log->va, cpu->ram->pages * sizeof *log->va);
  heddle_unreserve(log->filled, cpu->ram->pages * sizeof *log->filled);
  heddle_mem_core_close(&log->core);
}
