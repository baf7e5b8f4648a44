// The guest's memory, for C that executes instructions and for the tables of pages.
#include "general.h"

#include "engine.h"

#define INDEX(va) ((uint32_t)(va) >> HEDDLE_PAGE_SHIFT)

static uint64_t entry(const struct direct_bank *b, size_t table, uint64_t va) {
  return ((const uint64_t *)((const uint8_t *)b->context + table))[INDEX(va)];
}

// Puts a page into the tables, as far as its entry in the page tables allows.
static void keep(struct direct_engine *e, uint64_t va, uint64_t pte, enum heddle_access access) {
  uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
  uint8_t *bytes = heddle_ram_bytes(e->ram, page);
  bool code = e->ram->flags[page] & HEDDLE_PAGE_CODE;
  bool once = e->private_pages && e->private_pages->once;
  bool write = access == HEDDLE_WRITE && (pte & HEDDLE_PTE_READ) && !code && !once;
  if (write && e->buffers) direct_buffer_address(e, va, page);
  if (write) direct_bank_add(e->bank, va, bytes, true);
  if (pte & HEDDLE_PTE_READ) direct_bank_add(e->bank, va, bytes, false);
}

// Translates with all that this may change: the page may have to be copied.
static enum heddle_walk walk(struct direct_engine *e, uint64_t va, enum heddle_access access, uint64_t *pte) {
  struct heddle_space *s = e->space;
  bool synchronous = e->bank->version == s->version;
  if (e->private_pages) e->private_pages->filling = true;
  enum heddle_walk why = heddle_space_walk(s, va, access, true, pte);
  if (e->private_pages) e->private_pages->filling = false;
  // A page that is put into the tables now replaces the one that they had.
  if (access == HEDDLE_WRITE) direct_bank_remove(e->bank, va, false);
  if (synchronous) e->bank->version = s->version;
  if (e->private_pages && !why) why = direct_private_fill(e, va, access, pte);
  return why;
}

static __attribute__((noinline)) uint8_t *fill(struct direct_engine *e, uint64_t va, enum heddle_access access) {
  uint64_t pte;
  enum heddle_walk why = HEDDLE_WALK_OK;
  direct_float_park(e);
  if (e->log.what & LOG_MEMORY) direct_memory_log_sync(e);
  if (!heddle_space_peek(e->space, va, access, &pte)) why = walk(e, va, access, &pte);
  if (why) {
    e->access = access;
    e->walk = why;
    e->fault_address = va;
    return NULL;
  }
  uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
  // Translations of the page go before the next instruction.
  if (access == HEDDLE_WRITE) heddle_ram_written(e->ram, page);
  keep(e, va, pte, access);
  if (e->log.what & LOG_MEMORY) direct_memory_log_fill(e, va, page);
  return heddle_ram_bytes(e->ram, page) + offset_of(va);
}

// The host address of a byte of guest memory that may be accessed so, with the bytes after it in
// its page. NULL: it may not; access, walk and fault_address say why.
uint8_t *direct_locate(struct direct_engine *e, uint64_t va, enum heddle_access access) {
  bool write = access == HEDDLE_WRITE;
  if (entry(e->bank, write ? BANK_WRITE_PAGES : BANK_READ_PAGES, va) == page_of(va))
    return (uint8_t *)(uintptr_t)entry(e->bank, write ? BANK_WRITE_BYTES : BANK_READ_BYTES, va) + offset_of(va);
  return fill(e, va, access);
}

// Reports whether the tables have the page of an address.
bool direct_has_page(const struct direct_engine *e, uint64_t va, bool write) {
  return entry(e->bank, write ? BANK_WRITE_PAGES : BANK_READ_PAGES, va) == page_of(va);
}

// Puts the entries of the tables for the page of the thread's stack where blocks look for it.
void direct_find_stack(struct direct_engine *e) {
  struct direct_context *c = e->context;
  uint64_t page = page_of(c->gpr[RSP]);
  for (unsigned write = 0; write < 2; write++) {
    uint64_t *stack = write ? c->stack_write : c->stack_read;
    if (stack[0] == page || !direct_has_page(e, page, write)) continue;
    stack[0] = page;
    stack[1] = entry(e->bank, write ? BANK_WRITE_BYTES : BANK_READ_BYTES, page);
  }
}

static size_t in_page(uint64_t va, size_t n) {
  size_t room = HEDDLE_PAGE_SIZE - offset_of(va);
  return n < room ? n : room;
}

bool direct_read(struct direct_engine *e, uint64_t va, void *to, size_t n) {
  for (size_t done = 0; done < n;) {
    size_t part = in_page(va + done, n - done);
    const uint8_t *from = direct_locate(e, va + done, HEDDLE_READ);
    if (!from) return false;
    copy_bytes((uint8_t *)to + done, from, part);
    done += part;
  }
  if (e->log.what & LOG_UNITS) direct_log_access(e, va, to, n, false);
  return true;
}

bool direct_writable(struct direct_engine *e, uint64_t va, size_t n) {
  for (size_t done = 0; done < n; done += in_page(va + done, n - done))
    if (!direct_locate(e, va + done, HEDDLE_WRITE)) return false;
  return true;
}

// Bytes of the largest store of an instruction: FXSAVE.
#define LARGEST_STORE 416u

// Writes all or nothing.
bool direct_write(struct direct_engine *e, uint64_t va, const void *from, size_t n) {
  if (!direct_writable(e, va, n)) return false;
  if (e->buffers) {
    uint8_t old[LARGEST_STORE];
    for (size_t done = 0; done < n; done += in_page(va + done, n - done))
      copy_bytes(old + done, direct_locate(e, va + done, HEDDLE_WRITE), in_page(va + done, n - done));
    direct_buffer_store(e, e->running, va, old, n);
  }
  if (e->log.what & LOG_UNITS) direct_log_access(e, va, from, n, true);
  for (size_t done = 0; done < n;) {
    size_t part = in_page(va + done, n - done);
    copy_bytes(direct_locate(e, va + done, HEDDLE_WRITE), (const uint8_t *)from + done, part);
    done += part;
  }
  return true;
}

// Copies the code at pc, as far as it is mapped executable, at most two pages of it, and says
// which they are. The pages are code from then on.
size_t direct_fetch(struct direct_engine *e, uint64_t pc, uint8_t *out, size_t n, uint32_t phys[2]) {
  size_t done = 0;
  direct_float_park(e);
  phys[0] = phys[1] = NO_PAGE;
  for (int i = 0; i < 2 && done < n; i++) {
    uint64_t pte, at = pc + done;
    bool synchronous = e->bank->version == e->space->version;
    bool was_code = e->ram->flags[heddle_space_get(e->space, at) >> HEDDLE_PAGE_SHIFT] & HEDDLE_PAGE_CODE;
    e->walk = heddle_space_walk(e->space, at, HEDDLE_FETCH, true, &pte);
    if (e->walk) {
      e->access = HEDDLE_FETCH;
      e->fault_address = at;
      break;
    }
    if (synchronous) e->bank->version = e->space->version;
    uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
    phys[i] = (uint32_t)page;
    if (!was_code) direct_banks_protect(e, page);
    size_t part = in_page(at, n - done);
    copy_bytes(out + done, heddle_ram_bytes(e->ram, page) + offset_of(at), part);
    done += part;
  }
  return done;
}
