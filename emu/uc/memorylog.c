#include "memorylog.h"

#include <stdlib.h>
#include <string.h>

#include "run.h"

#define WIDE 2u  // an operand of 10 or 16 bytes, which the engine accesses in two parts

// ---- buffers ----------------------------------------------------------------

// Exchanges the contents of the log's buffer and b.
void heddle_mem_swap(struct heddle_cpu *cpu, struct heddle_mem_buffer *b) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  struct heddle_mem_buffer own = *log->to;
  *log->to = *b;
  *b = own;
  log->to->n = log->to->nbytes = 0;
  log->start = 0;
  cpu->logs.flow.full = false;
}

// The run must stop at the next block. Until then there must be room.
static __attribute__((noinline)) void note_full(struct heddle_mem_log *log) {
  struct heddle_mem_buffer *b = log->to;
  log->cpu->logs.flow.full = true;
  if (b->n + 4 <= b->room) return;
  b->room *= 2;
  b->entries = realloc(b->entries, b->room * sizeof *b->entries);
  if (!b->entries) abort();
}

static struct heddle_mem_entry *add_entry(struct heddle_mem_log *log, uint8_t kind) {
  if (++log->to->n >= HEDDLE_MEM_FULL) note_full(log);
  struct heddle_mem_entry *e = &log->to->entries[log->to->n - 1];
  *e = (struct heddle_mem_entry){.kind = kind};
  return e;
}

// Keeps bytes for an entry and returns their offset.
static uint64_t keep_bytes(struct heddle_mem_log *log, const void *bytes, size_t n) {
  struct heddle_mem_buffer *b = log->to;
  if (b->nbytes + n > b->bytes_room) {
    b->bytes_room = 2 * (b->nbytes + n);
    b->bytes = realloc(b->bytes, b->bytes_room);
    if (!b->bytes) abort();
  }
  memcpy(b->bytes + b->nbytes, bytes, n);
  b->nbytes += n;
  return b->nbytes - n;
}

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

static bool overlaps_any(const struct heddle_mem_range *ranges, size_t n, uint64_t from, uint64_t to) {
  for (size_t i = 0; i < n; i++)
    if (from < ranges[i].end && to > ranges[i].start) return true;
  return n == 0;
}

// Returns the address of a load that lies in two pages; the engine reports it after it has
// translated the second. If both are the same page, that is known by its second address now.
// (Otherwise the engine asked for the second page last.)
static uint64_t address_across(const struct heddle_mem_log *log, uint64_t page) {
  bool same = log->last_page == page && log->last_start == log->start &&
      log->va[page] == log->last_was + HEDDLE_PAGE_SIZE;
  return same ? log->last_was : log->va[page];
}

static void on_access(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *user) {
  (void)uc;
  struct heddle_mem_log *log = user;
  if (log->muted) return;
  uint64_t page = address >> HEDDLE_PAGE_SHIFT, va = log->va[page], offset = address & (HEDDLE_PAGE_SIZE - 1);
  if (__builtin_expect(offset + (unsigned)size > HEDDLE_PAGE_SIZE, 0) && type != UC_MEM_WRITE)
    va = address_across(log, page);
  va |= offset;
  if (log->selective && !(overlaps_any(log->data, log->ndata, va, va + (unsigned)size) &&
                          overlaps_any(log->code, log->ncode, log->pc, log->pc + 1)))
    return;
  uint64_t facts = site_facts(log);
  struct heddle_mem_buffer *to = log->to;
  struct heddle_mem_entry *e = &to->entries[to->n];
  uint8_t kind = type == UC_MEM_WRITE ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD;
  e->addr = va;
  e->value = size == 8 ? (uint64_t)value : (uint64_t)value & (((uint64_t)1 << 8 * size) - 1);
  e->pc = log->pc;
  e->branches = (uint32_t)heddle_cpu_branches_now(log->cpu);
  e->size = (uint16_t)size;
  e->kind = kind;
  e->flags = (uint8_t)(facts & HEDDLE_MEM_ATOMIC);
  if (__builtin_expect(facts & WIDE, 0) && to->n > log->start && e[-1].kind == kind && e[-1].size == 8 &&
      e[-1].addr + 8 == va) {
    e[-1].size = (uint16_t)(8 + size);
    e->kind = HEDDLE_MEM_HIGH;
  }
  if (__builtin_expect(++to->n >= HEDDLE_MEM_FULL, 0)) note_full(log);
}

static void on_code(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  (void)size;
  struct heddle_mem_log *log = user;
  log->pc = pc;
  log->start = log->to->n;
}

// The running instruction has stored n zeros, at most 8, which the engine has not reported.
void heddle_mem_add_store(struct heddle_mem_log *log, uint64_t va, size_t n) {
  if (!log->on || log->muted) return;
  if (log->selective && !(overlaps_any(log->data, log->ndata, va, va + n) &&
                          overlaps_any(log->code, log->ncode, log->pc, log->pc + 1)))
    return;
  struct heddle_mem_entry *e = add_entry(log, HEDDLE_MEM_STORE);
  e->addr = va;
  e->pc = log->pc;
  e->branches = (uint32_t)heddle_cpu_branches_now(log->cpu);
  e->size = (uint16_t)n;
}

static bool is_access(const struct heddle_mem_entry *e) { return e->kind <= HEDDLE_MEM_HIGH; }

// The last instruction did not complete: removes its accesses.
void heddle_mem_undo(struct heddle_mem_log *log) {
  if (!log->on) return;
  struct heddle_mem_buffer *b = log->to;
  size_t n = log->start;
  for (size_t i = log->start; i < b->n; i++)
    if (!is_access(&b->entries[i])) b->entries[n++] = b->entries[i];
  b->n = n;
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
  e = add_entry(log, HEDDLE_MEM_HIGH);
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
  struct heddle_mem_buffer *b = log->to;
  struct heddle_mem_entry *e = b->entries + b->n;
  do {
    if (e == b->entries + log->start) return;
    e--;
  } while (e->kind != HEDDLE_MEM_STORE && e->kind != HEDDLE_MEM_HIGH);
  uint64_t page = heddle_space_get(log->cpu->space, e->addr) >> HEDDLE_PAGE_SHIFT;
  if (!(log->cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) return;
  if (is_stored(log, e) && repeats_or_calls(log)) return;
  if (e->addr & ((e->size < 8 ? e->size : 8) - 1)) log->hooks_lost = true;
  else heddle_mem_undo(log);
}

// The engine is restarted at the block after an instruction whose accesses it did not report.
void heddle_mem_hooks_regained(struct heddle_mem_log *log) {
  if (!log->hooks_lost) return;
  log->hooks_lost = false;
  if (log->to->n > log->start) complete_wide_store(log, &log->to->entries[log->to->n - 1]);
}

// ---- pages ------------------------------------------------------------------

static const uint8_t zeros[HEDDLE_PAGE_SIZE];

static void log_content(struct heddle_mem_log *log, uint64_t page, uint64_t va) {
  if (log->known[page] == log->generation || log->partial) return;
  if (!overlaps_any(log->data, log->ndata, va, va + HEDDLE_PAGE_SIZE)) return;
  log->known[page] = log->generation;
  const uint8_t *bytes = heddle_ram_bytes(log->cpu->ram, page);
  bool zero = !memcmp(bytes, zeros, sizeof zeros);
  struct heddle_mem_entry *e = add_entry(log, zero ? HEDDLE_MEM_ZERO : HEDDLE_MEM_CONTENT);
  e->pc = page;
  if (!zero) e->value = keep_bytes(log, bytes, sizeof zeros);
}

// Removes the last access of the running instruction from the log: the engine may ask for the
// access's second page after it has reported the access.
static size_t pop_last_access(struct heddle_mem_log *log, struct heddle_mem_entry *out) {
  struct heddle_mem_buffer *b = log->to;
  if (b->n == log->start || !is_access(&b->entries[b->n - 1])) return 0;
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
  log->last_start = log->start;
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
  log_content(log, page, va);
  struct heddle_mem_entry *e = add_entry(log, HEDDLE_MEM_MAP);
  e->addr = va;
  e->pc = page;
  for (size_t i = 0; i < n; i++) *add_entry(log, 0) = last[i];
}

// ---- changes that the guest does not make -----------------------------------

// The content of a page is no longer what the log implies: it is logged again when the engine asks
// for the page.
static void forget_content(struct heddle_mem_log *log, uint64_t page) {
  if (log->known[page] != log->generation) return;
  log->known[page] = 0;
  log->flush = true;
}

static bool is_running(const struct heddle_mem_log *log) { return log->cpu->run.state != HEDDLE_STATE_IDLE; }

// Corrects the entries of an instruction that was executed alone and stored something other than
// the engine reported.
static void correct_stores(struct heddle_mem_log *log, uint64_t va, const uint8_t *bytes, size_t n) {
  struct heddle_mem_buffer *b = log->to;
  for (size_t i = log->start; i < b->n; i++) {
    struct heddle_mem_entry *e = &b->entries[i];
    if (e->kind != HEDDLE_MEM_STORE && e->kind != HEDDLE_MEM_HIGH) continue;
    for (unsigned k = 0; k < (e->size < 8 ? e->size : 8); k++) {
      uint64_t at = e->addr + k - va;
      if (at < n) e->value = (e->value & ~((uint64_t)0xff << 8 * k)) | (uint64_t)bytes[at] << 8 * k;
    }
  }
}

// The largest write, in bytes, that is logged. After a larger one the content of the page is logged
// when the guest accesses it.
#define KERNEL_MOST 1024u

static void kernel_wrote(void *observer, uint64_t page, uint64_t va, const void *bytes, size_t n) {
  struct heddle_mem_log *log = observer;
  if (!n) return;
  if (is_running(log)) {
    correct_stores(log, va, bytes, n);
    return;
  }
  if (log->partial || !overlaps_any(log->data, log->ndata, va, va + n)) return;
  bool later = n > KERNEL_MOST || log->known[page] != log->generation;
  if (later) forget_content(log, page);
  struct heddle_mem_entry *e = &log->to->entries[log->to->n - 1];
  if (later && log->cpu->ram->commits) return;
  if (later && log->to->n && e->kind == HEDDLE_MEM_KERNEL && (e->flags & HEDDLE_MEM_LATER) &&
      e->addr + e->branches == va &&
      e->branches + n < UINT32_MAX) {
    e->branches += (uint32_t)n;
    return;
  }
  e = add_entry(log, HEDDLE_MEM_KERNEL);
  e->addr = va;
  e->pc = page;
  e->branches = (uint32_t)n;
  e->flags = later ? HEDDLE_MEM_LATER : log->cpu->ram->commits ? HEDDLE_MEM_BUFFERED : 0;
  if (!later) e->value = keep_bytes(log, bytes, n);
}

static void kernel_read(void *observer, uint64_t page, uint64_t va, size_t n) {
  struct heddle_mem_log *log = observer;
  if (!log->cpu->ram->reads_for_guest || is_running(log) || !n) return;
  if (log->partial || !overlaps_any(log->data, log->ndata, va, va + n)) return;
  struct heddle_mem_entry *e = add_entry(log, HEDDLE_MEM_READ);
  e->addr = va;
  e->pc = page;
  e->branches = (uint32_t)n;
}

static void changed(void *observer, uint64_t page) { forget_content(observer, page); }

// A page that is allocated has no translations.
static void allocated(void *observer, uint64_t page) { ((struct heddle_mem_log *)observer)->known[page] = 0; }

static void copied(void *observer, uint64_t page, uint64_t from) {
  struct heddle_mem_log *log = observer;
  if (log->known[from] != log->generation) return;
  log->known[page] = log->generation;
  struct heddle_mem_entry *e = add_entry(log, HEDDLE_MEM_COPY);
  e->pc = page;
  e->value = from;
}

static void space_cleared(void *observer, const struct heddle_space *s) { (void)observer, (void)s; }

static void walked(void *observer, struct heddle_space *s, uint64_t va, enum heddle_access access, uint64_t *pte) {
  (void)observer, (void)s, (void)va, (void)access, (void)pte;
}

static uint64_t seen(void *observer, uint64_t pte) {
  (void)observer;
  return pte;
}

static const struct heddle_observer memory_log = {
    .allocated = allocated, .copied = copied, .read = kernel_read, .written = kernel_wrote,
    .changed = changed, .cleared = space_cleared, .walked = walked, .seen = seen,
};

// Returns the log that observes the RAM, or NULL.
static struct heddle_mem_log *log_of(const struct heddle_ram *ram) {
  return ram->observer == &memory_log ? ram->observed_by : NULL;
}

// Store buffers have written n bytes, all in one page.
void heddle_mem_buffered(struct heddle_ram *ram, uint64_t physical, uint64_t va, const void *bytes, size_t n) {
  struct heddle_mem_log *log = log_of(ram);
  if (!log) return;
  ram->commits = true;
  kernel_wrote(log, physical >> HEDDLE_PAGE_SHIFT, va, bytes, n);
  ram->commits = false;
}

// ---- instructions that other cores interrupt ---------------------------------

static bool is_logging(const struct heddle_mem_log *log) { return log->on && !log->muted; }

// Logs the content of the pages that the instruction is about to access, for which the engine may
// not have asked.
void heddle_mem_pages(struct heddle_cpu *cpu, const struct heddle_inside *in) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  for (uint32_t i = 0; is_logging(log) && i < in->n; i++) {
    uint64_t va = in->pieces[i].addr & ~(HEDDLE_PAGE_SIZE - 1);
    uint64_t pte = heddle_space_get(cpu->space, va);
    if (pte) log_content(log, pte >> HEDDLE_PAGE_SHIFT, va);
  }
}

static void log_piece(struct heddle_mem_log *log, const struct heddle_inside *in, uint32_t number) {
  const struct heddle_piece *p = &in->pieces[number];
  uint64_t va = p->addr & ~(HEDDLE_PAGE_SIZE - 1), pte = heddle_space_get(log->cpu->space, va);
  if (log->selective && !(overlaps_any(log->data, log->ndata, p->addr, p->addr + p->size) &&
                          overlaps_any(log->code, log->ncode, in->pc, in->pc + 1)))
    return;
  struct heddle_mem_entry *e = add_entry(log, HEDDLE_MEM_MAP);
  e->addr = va;
  e->pc = pte >> HEDDLE_PAGE_SHIFT;
  e = add_entry(log, HEDDLE_MEM_PART);
  e->addr = in->n;
  e->pc = number;
  for (uint32_t at = 0; at < p->size; at += 8) {
    uint32_t left = p->size - at;
    e = add_entry(log, at ? HEDDLE_MEM_HIGH : p->stores ? HEDDLE_MEM_STORE : HEDDLE_MEM_LOAD);
    e->addr = p->addr + at;
    memcpy(&e->value, p->bytes + at, left < 8 ? left : 8);
    e->pc = in->pc;
    e->branches = (uint32_t)in->branches;
    e->size = (uint16_t)(at ? left : p->size);
  }
}

// Logs the accesses [from, upto) of an instruction that other cores interrupt.
void heddle_mem_pieces(struct heddle_cpu *cpu, const struct heddle_inside *in, uint32_t from, uint32_t upto) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  if (!is_logging(log)) return;
  heddle_mem_pages(cpu, in);
  for (uint32_t i = from; i < upto; i++) log_piece(log, in, i);
}

// ---- initialization ---------------------------------------------------------

static struct heddle_mem_range *copy_ranges(const struct heddle_mem_range *ranges, size_t n) {
  struct heddle_mem_range *copy = malloc((n ? n : 1) * sizeof *copy);
  if (copy) memcpy(copy, ranges, n * sizeof *copy);
  return copy;
}

static bool allocate_tables(struct heddle_mem_log *log, uint64_t pages) {
  log->to = heddle_mem_new_buffer();
  log->sites = calloc(HEDDLE_MEM_SITES, sizeof *log->sites);
  log->va = heddle_reserve(pages * sizeof *log->va);
  log->filled = heddle_reserve(pages * sizeof *log->filled);
  log->known = heddle_reserve(pages * sizeof *log->known);
  return log->to && log->sites && log->va && log->filled && log->known && log->data && log->code;
}

// Starts to log. Nothing may have run yet, as for the log of branches.
int heddle_mem_open(struct heddle_cpu *cpu, const struct heddle_mem_range *data, size_t ndata,
                    const struct heddle_mem_range *code, size_t ncode, bool partial) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  if (cpu->engine.has_run || log->on) return UC_ERR_ARG;
  log->data = copy_ranges(data, ndata);
  log->code = copy_ranges(code, ncode);
  log->ndata = ndata;
  log->ncode = ncode;
  log->selective = ndata || ncode;
  log->partial = partial || ncode;
  if (!allocate_tables(log, cpu->ram->pages)) return UC_ERR_NOMEM;
  log->cpu = cpu;
  log->epoch = log->generation = 1;
  log->on = true;
  cpu->ram->observer = &memory_log;
  cpu->ram->observed_by = log;
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

void heddle_mem_close(struct heddle_cpu *cpu) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  if (!log->data) return;
  for (int i = 0; i < 3; i++)
    if (log->hooks[i]) uc_hook_del(cpu->engine.uc, log->hooks[i]);
  heddle_mem_free_buffer(log->to);
  free(log->sites);
  heddle_unreserve(log->va, cpu->ram->pages * sizeof *log->va);
  heddle_unreserve(log->filled, cpu->ram->pages * sizeof *log->filled);
  heddle_unreserve(log->known, cpu->ram->pages * sizeof *log->known);
  free(log->data);
  free(log->code);
  if (log_of(cpu->ram) == log) cpu->ram->observer = NULL;
}

// The machine has returned to an earlier state: the entries since then are void.
void heddle_mem_forget(struct heddle_cpu *cpu) {
  struct heddle_mem_log *log = &cpu->logs.memory;
  log->generation++;
  log->to->n = log->to->nbytes = log->start = 0;
  log->flush = true;
}
