#include "core.h"

#include <string.h>

// ---- buffers ----------------------------------------------------------------

// Exchanges the contents of the log's buffer and b.
void heddle_mem_swap(struct heddle_mem_core *log, struct heddle_mem_buffer *b) {
  struct heddle_mem_buffer own = *log->to;
  *log->to = *b;
  *b = own;
  log->to->n = log->to->nbytes = 0;
  log->start = 0;
  log->full = false;
}

// The run must stop at the next block. Until then there must be room.
void heddle_mem_note_full(struct heddle_mem_core *log) {
  struct heddle_mem_buffer *b = log->to;
  log->full = true;
  if (b->n + 4 <= b->room) return;
  b->room *= 2;
  b->entries = realloc(b->entries, b->room * sizeof *b->entries);
  if (!b->entries) abort();
}

struct heddle_mem_entry *heddle_mem_add(struct heddle_mem_core *log, uint8_t kind) {
  if (++log->to->n >= HEDDLE_MEM_FULL) heddle_mem_note_full(log);
  struct heddle_mem_entry *e = &log->to->entries[log->to->n - 1];
  *e = (struct heddle_mem_entry){.kind = kind};
  return e;
}

// Keeps bytes for an entry and returns their offset.
static uint64_t keep_bytes(struct heddle_mem_core *log, const void *bytes, size_t n) {
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

// The last instruction did not complete: removes its accesses.
void heddle_mem_undo(struct heddle_mem_core *log) {
  if (!log->on) return;
  struct heddle_mem_buffer *b = log->to;
  size_t n = log->start;
  for (size_t i = log->start; i < b->n; i++)
    if (!heddle_mem_is_access(&b->entries[i])) b->entries[n++] = b->entries[i];
  b->n = n;
}

// Has the consumer take accesses of a block, after the entries before them. Returns how many it has taken.
size_t heddle_mem_consume(struct heddle_mem_core *log, const struct heddle_mem_access *accesses, size_t n, const uint64_t *record,
                          uint32_t branches) {
  struct heddle_mem_consumer *c = log->consumer;
  struct heddle_mem_buffer *b = log->to;
  if (b->n) {
    size_t taken = c->take_entries(c, b->entries, b->n, b->bytes);
    b->n -= taken;
    memmove(b->entries, b->entries + taken, b->n * sizeof *b->entries);
    log->start = b->n;
    if (b->n) return 0;
    b->nbytes = 0;
    log->full = false;
  }
  c->era = log->era;
  return c->held ? 0 : c->take_accesses(c, accesses, n, record, branches);
}

// Returns a number that no engine of the process has got yet.
uint64_t heddle_mem_new_era(void) {
  static _Atomic uint64_t last;
  return ++last;
}

// ---- pages ------------------------------------------------------------------

static const uint8_t zeros[HEDDLE_PAGE_SIZE];

// Logs the content of the page at va unless it is known.
void heddle_mem_content(struct heddle_mem_core *log, uint64_t page, uint64_t va) {
  if (log->known[page] == log->generation || log->partial) return;
  if (!heddle_mem_overlaps(log->data, log->ndata, va, va + HEDDLE_PAGE_SIZE)) return;
  log->known[page] = log->generation;
  const uint8_t *bytes = heddle_ram_bytes(log->ram, page);
  bool zero = !memcmp(bytes, zeros, sizeof zeros);
  struct heddle_mem_entry *e = heddle_mem_add(log, zero ? HEDDLE_MEM_ZERO : HEDDLE_MEM_CONTENT);
  e->pc = page;
  if (!zero) e->value = keep_bytes(log, bytes, sizeof zeros);
}

// Logs that va, the address of a page, leads to a page from now on.
void heddle_mem_map(struct heddle_mem_core *log, uint64_t page, uint64_t va) {
  struct heddle_mem_entry *e = heddle_mem_add(log, HEDDLE_MEM_MAP);
  e->addr = va;
  e->pc = page;
}

// ---- changes that the guest does not make -----------------------------------

// The content of a page is no longer what the log implies: it is logged again when the engine asks
// for the page.
static void forget_content(struct heddle_mem_core *log, uint64_t page) {
  if (log->known[page] != log->generation) return;
  log->known[page] = 0;
  log->flush = true;
}

// The largest write, in bytes, that is logged. After a larger one the content of the page is logged
// when the guest accesses it.
#define KERNEL_MOST 1024u

static void kernel_wrote(void *observer, uint64_t page, uint64_t va, const void *bytes, size_t n) {
  struct heddle_mem_core *log = observer;
  if (!n || log->is_own(log->engine, va, bytes, n)) return;
  if (log->partial || !heddle_mem_overlaps(log->data, log->ndata, va, va + n)) return;
  bool later = n > KERNEL_MOST || log->known[page] != log->generation;
  if (later) forget_content(log, page);
  if (later && log->ram->commits) return;
  struct heddle_mem_entry *e = &log->to->entries[log->to->n - 1];
  if (later && log->to->n && e->kind == HEDDLE_MEM_KERNEL && (e->flags & HEDDLE_MEM_LATER) &&
      e->addr + e->branches == va &&
      e->branches + n < UINT32_MAX) {
    e->branches += (uint32_t)n;
    return;
  }
  e = heddle_mem_add(log, HEDDLE_MEM_KERNEL);
  e->addr = va;
  e->pc = page;
  e->branches = (uint32_t)n;
  e->flags = later ? HEDDLE_MEM_LATER : log->ram->commits ? HEDDLE_MEM_BUFFERED : 0;
  if (!later) e->value = keep_bytes(log, bytes, n);
}

static void kernel_read(void *observer, uint64_t page, uint64_t va, size_t n) {
  struct heddle_mem_core *log = observer;
  if (!log->ram->reads_for_guest || !n || log->is_own(log->engine, va, NULL, n)) return;
  if (log->partial || !heddle_mem_overlaps(log->data, log->ndata, va, va + n)) return;
  // A content after the read would look like that of a new page.
  if (log->late) heddle_mem_content(log, page, va - va % HEDDLE_PAGE_SIZE);
  struct heddle_mem_entry *e = heddle_mem_add(log, HEDDLE_MEM_READ);
  e->addr = va;
  e->pc = page;
  e->branches = (uint32_t)n;
}

static void changed(void *observer, uint64_t page) { forget_content(observer, page); }

// A page that is allocated has no translations.
static void allocated(void *observer, uint64_t page) { ((struct heddle_mem_core *)observer)->known[page] = 0; }

static void copied(void *observer, const struct heddle_space *s, uint64_t page, uint64_t from) {
  (void)s;
  struct heddle_mem_core *log = observer;
  if (log->known[from] != log->generation) return;
  log->known[page] = log->generation;
  struct heddle_mem_entry *e = heddle_mem_add(log, HEDDLE_MEM_COPY);
  e->pc = page;
  e->value = from;
}

static void space_cleared(void *observer, const struct heddle_space *s) { (void)observer, (void)s; }

static const struct heddle_observer memory_log = {
    .allocated = allocated, .copied = copied, .read = kernel_read, .written = kernel_wrote,
    .changed = changed, .cleared = space_cleared,
};

// Returns the log that observes the RAM, or NULL.
static struct heddle_mem_core *log_of(const struct heddle_ram *ram) {
  return ram->observer == &memory_log ? ram->observed_by : NULL;
}

// The machine has returned to an earlier state: the entries since then are void.
void heddle_mem_forget(struct heddle_mem_core *log) {
  log->generation++;
  log->to->n = log->to->nbytes = log->start = 0;
  log->flush = true;
}

// ---- initialization ---------------------------------------------------------

static struct heddle_mem_range *copy_ranges(const struct heddle_mem_range *ranges, size_t n) {
  struct heddle_mem_range *copy = malloc((n ? n : 1) * sizeof *copy);
  if (copy && n) memcpy(copy, ranges, n * sizeof *copy);
  return copy;
}

// Starts to log, and to observe the RAM. Returns false if there is no memory for it.
bool heddle_mem_core_open(struct heddle_mem_core *log, struct heddle_ram *ram, const struct heddle_mem_range *data,
                          size_t ndata, const struct heddle_mem_range *code, size_t ncode, bool partial) {
  log->data = copy_ranges(data, ndata);
  log->code = copy_ranges(code, ncode);
  log->ndata = ndata;
  log->ncode = ncode;
  log->selective = ndata || ncode;
  log->partial = partial || ncode;
  log->ram = ram;
  log->to = heddle_mem_new_buffer();
  log->known = heddle_reserve(ram->pages * sizeof *log->known);
  if (!log->data || !log->code || !log->to || !log->known) return false;
  log->generation = 1;
  log->era = heddle_mem_new_era();
  log->on = true;
  ram->observer = &memory_log;
  ram->observed_by = log;
  return true;
}

void heddle_mem_core_close(struct heddle_mem_core *log) {
  if (!log->data) return;
  heddle_mem_free_buffer(log->to);
  heddle_unreserve(log->known, log->ram->pages * sizeof *log->known);
  free(log->data);
  free(log->code);
  if (log_of(log->ram) == log) log->ram->observer = NULL;
}

// ---- discarding ---------------------------------------------------------------

static size_t discard_entries(struct heddle_mem_consumer *c, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes) {
  (void)c, (void)entries, (void)bytes;
  return n;
}

static size_t discard_accesses(struct heddle_mem_consumer *c, const struct heddle_mem_access *accesses, size_t n, const uint64_t *record,
                               uint32_t branches) {
  (void)c, (void)accesses, (void)record, (void)branches;
  return n;
}

struct heddle_mem_consumer *heddle_mem_discard(void) {
  static struct heddle_mem_consumer discard = {.take_entries = discard_entries, .take_accesses = discard_accesses};
  return &discard;
}
