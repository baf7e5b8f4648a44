#define _GNU_SOURCE

#include "private.h"

#include <stdlib.h>
#include <string.h>

// ---- the threads that have accessed a page ----------------------------------

// The state of a page is 0 if no thread has accessed it, ONLY(t) if only thread t has, else SHARED.
// The lower bits are flags.
#define SHARED 1u      // several threads have accessed it
#define CONTENDED 2u   // ... and stored to it at the same time
#define HANDED_ON 4u   // another thread was the only one before
#define ONLY(thread) (((thread) + 1) << 3)

static bool has_only_thread(uint32_t state) { return state >> 3 != 0; }
static uint32_t only_thread(uint32_t state) { return (state >> 3) - 1; }

#define PAGE(pte) ((uint32_t)((pte) >> HEDDLE_PAGE_SHIFT))
#define START(address) ((address) & ~(HEDDLE_PAGE_SIZE - 1))
#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

static uint8_t *bytes_of(const struct heddle_private_pages *p, uint32_t page) {
  return heddle_ram_bytes(p->ram, page);
}

// Reports whether all cores write the page in place. A core that stores to one drains its buffer at
// the end of its run, and no other core runs before that.
static bool is_written_in_place(uint64_t pte) { return pte & (HEDDLE_PTE_SHARED | HEDDLE_PTE_EXEC); }

// ---- pages of the RAM for copies --------------------------------------------

// Allocates a page. These pages lie beyond those that the guest may use, and do not count as used.
static uint32_t take_page(struct heddle_private_pages *p) {
  struct heddle_ram *ram = p->ram;
  if (p->npages >= HEDDLE_PRIVATE_PAGES) abort();
  uint64_t page = heddle_ram_take(ram, false);
  ram->refs[page] = 1;
  p->state[page] = p->first_copy[page] = 0;
  p->npages++;
  return (uint32_t)page;
}

void heddle_private_unref(struct heddle_private_pages *p, uint32_t page) {
  if (--p->ram->refs[page]) return;
  heddle_ram_give_back(p->ram, page);
  p->npages--;
}

// Gives the copy a page that no snapshot shares.
static void unshare_page(struct heddle_private_pages *p, struct heddle_private_page *c) {
  if (p->ram->refs[c->own] == 1) return;
  uint32_t page = take_page(p);
  memcpy(bytes_of(p, page), bytes_of(p, c->own), HEDDLE_PAGE_SIZE);
  heddle_private_unref(p, c->own);
  c->own = page;
}

// ---- copies -----------------------------------------------------------------

static struct heddle_private_page *copy_of(const struct heddle_private_pages *p, uint32_t page, uint32_t core) {
  for (uint32_t i = p->first_copy[page]; i; i = p->copies[i].next)
    if (p->copies[i].core == core) return &p->copies[i];
  return NULL;
}

// Returns a copy of the page that belongs to another core, or NULL.
static struct heddle_private_page *copy_of_another(const struct heddle_private_pages *p, uint32_t page, uint32_t core) {
  for (uint32_t i = p->first_copy[page]; i; i = p->copies[i].next)
    if (p->copies[i].core != core) return &p->copies[i];
  return NULL;
}

static uint32_t allocate_copy(struct heddle_private_pages *p) {
  uint32_t i = p->first_free;
  if (i) {
    p->first_free = p->copies[i].next;
    return i;
  }
  if (p->ncopies == p->room) {
    p->room *= 2;
    p->copies = realloc(p->copies, p->room * sizeof *p->copies);
    if (!p->copies) abort();
  }
  return p->ncopies++;
}

static struct heddle_private_page *add_copy(struct heddle_private_pages *p, uint32_t core, uint64_t va, uint32_t page,
                                            uint32_t own) {
  struct heddle_core_pages *buffer = &p->cores[core];
  if (buffer->n == buffer->room) {
    buffer->room = buffer->room ? 2 * buffer->room : 16;
    buffer->copies = realloc(buffer->copies, buffer->room * sizeof *buffer->copies);
    if (!buffer->copies) abort();
  }
  uint32_t i = allocate_copy(p);
  struct heddle_private_page *c = &p->copies[i];
  *c = (struct heddle_private_page){.va = START(va), .shared = page, .own = own, .next = p->first_copy[page],
                                    .core = (uint16_t)core};
  p->first_copy[page] = i;
  buffer->copies[buffer->n++] = i;
  p->nused++;
  return c;
}

// Removes the copy from its page's list. Returns false if the shared page is gone; its number may
// be in use again.
static bool unlink_copy(struct heddle_private_pages *p, uint32_t i) {
  struct heddle_private_page *c = &p->copies[i];
  for (uint32_t *at = &p->first_copy[c->shared]; *at; at = &p->copies[*at].next) {
    if (*at != i) continue;
    *at = c->next;
    return true;
  }
  return false;
}

static void release_copy(struct heddle_private_pages *p, uint32_t i) {
  p->nused--;
  heddle_private_unref(p, p->copies[i].own);
  if (p->copies[i].twin) heddle_private_unref(p, p->copies[i].twin);
  p->copies[i].next = p->first_free;
  p->first_free = i;
}

// ---- views ------------------------------------------------------------------

// With views, a core is a thread's view of memory: from its beginning on, it does not change but for
// the thread's own stores, which others do not see. A drain compares each copy with its twin and
// writes the bytes that differ to the shared page, and the view is over. Cores that are not views
// access the shared pages, and before such a page changes each view gets a copy of it as it was.

// Copies that are left are for the machine's snapshots.
#define VIEWED (HEDDLE_PRIVATE_PAGES - HEDDLE_PRIVATE_PAGES / 16)

// Gives a core a copy of the page, which is its own twin. The content is the caller's reference to a
// page of the RAM, or 0: the shared page's. Returns NULL if there is no room.
static struct heddle_private_page *add_unchanged(struct heddle_private_pages *p, uint32_t core, uint64_t va, uint32_t page,
                                                 uint32_t content) {
  if (!content) {
    if (p->npages >= VIEWED) {
      p->overflowed = true;
      return NULL;
    }
    content = take_page(p);
    memcpy(bytes_of(p, content), bytes_of(p, page), HEDDLE_PAGE_SIZE);
  }
  struct heddle_private_page *c = add_copy(p, core, va, page, content);
  c->twin = content;
  p->ram->refs[content]++;
  return c;
}

// The shared page is about to change: gives each view of the space that has no copy of it one.
static void keep_for_views(struct heddle_private_pages *p, const struct heddle_space *s, uint64_t va, uint32_t page) {
  uint32_t content = 0;
  for (uint32_t core = 0; core < p->ncores; core++) {
    if (!p->cores[core].view || p->cores[core].space != s || copy_of(p, page, core)) continue;
    if (content) p->ram->refs[content]++;
    struct heddle_private_page *c = add_unchanged(p, core, va, page, content);
    if (!c) return;
    content = c->own;
    if (p->cores[core].thread == p->last_thread) p->translations_outdated = true;
  }
}

// The running core's copy of the page, which it is about to store to.
static struct heddle_private_page *changed_copy(struct heddle_private_pages *p, uint64_t va, uint32_t page) {
  struct heddle_private_page *c = copy_of(p, page, p->running_core);
  if (!c && !(c = add_unchanged(p, p->running_core, va, page, 0))) return NULL;
  if (c->own == c->twin) {
    if (p->npages >= VIEWED) {
      p->overflowed = true;
      return NULL;
    }
    p->faults++;
  }
  unshare_page(p, c);
  return c;
}

// Writes the bytes that a view's thread has stored to the shared page.
static void publish_changes(struct heddle_private_pages *p, struct heddle_space *s, uint32_t i) {
  uint64_t va = p->copies[i].va;
  if (p->copies[i].own == p->copies[i].twin) {
    unlink_copy(p, i);
    return;
  }
  uint64_t pte = heddle_space_own(s, va);
  struct heddle_private_page *c = &p->copies[i];
  if (!unlink_copy(p, i) || PAGE(pte) != c->shared) return;
  uint32_t shared = c->shared, own = c->own, twin = c->twin;
  keep_for_views(p, s, va, shared); // may move the copies
  uint8_t *to = bytes_of(p, shared);
  const uint8_t *from = bytes_of(p, own), *before = bytes_of(p, twin);
  for (unsigned at = 0; at < HEDDLE_PAGE_SIZE; at += 8) {
    if (!memcmp(from + at, before + at, 8)) continue;
    for (unsigned b = at; b < at + 8; b++)
      if (from[b] != before[b]) to[b] = from[b];
  }
  p->published++;
  heddle_ram_written(p->ram, shared);
}

// ---- draining ---------------------------------------------------------------

static void copy_marked(uint8_t *to, const uint8_t *from, const uint64_t *bytes, const uint64_t *but) {
  for (unsigned word = 0; word < 64; word++) {
    uint64_t left = bytes[word] & ~(but ? but[word] : 0);
    for (; left; left &= left - 1) {
      unsigned at = 64 * word + (unsigned)__builtin_ctzll(left);
      to[at] = from[at];
    }
  }
}

// Writes the bytes that the copy's core has stored to the shared page, and to other cores' copies
// except where those cores have stored themselves.
static void publish(struct heddle_private_pages *p, struct heddle_space *s, uint32_t i) {
  uint64_t pte = heddle_space_own(s, p->copies[i].va);
  struct heddle_private_page *c = &p->copies[i];
  if (!unlink_copy(p, i) || PAGE(pte) != c->shared) return;
  uint8_t *to = bytes_of(p, c->shared), *from = bytes_of(p, c->own);
  if (c->full) {
    memcpy(to, from, HEDDLE_PAGE_SIZE);
  } else {
    copy_marked(to, from, c->bytes, NULL);
    for (uint32_t k = p->first_copy[c->shared]; k; k = p->copies[k].next) {
      struct heddle_private_page *o = &p->copies[k];
      unshare_page(p, o);
      copy_marked(bytes_of(p, o->own), from, c->bytes, o->bytes);
    }
  }
  heddle_ram_written(p->ram, c->shared);
}

// Drops the engine's address translations. Inside the callback that supplies them they can be
// flushed at once; otherwise the next start of the engine does so.
static void flush_translations(struct heddle_private_pages *p) {
  p->functions->flush(p->engine, p->running_core != HEDDLE_NO_CORE && !p->tracing);
}

// Marks the bytes of the traced store, if its instruction has retired.
static void mark_traced_store(struct heddle_private_pages *p) {
  struct heddle_traced_store *s = &p->traced_store;
  if (!s->n || p->functions->instructions(p->engine) == s->at) return;
  for (uint32_t i = 0; i < s->n; i++) {
    struct heddle_private_page *c = &p->copies[s->parts[i].copy];
    for (uint32_t b = s->parts[i].from; b < s->parts[i].from + s->parts[i].size; b++)
      c->bytes[b / 64] |= (uint64_t)1 << b % 64;
  }
  s->n = 0;
}

// Makes all stores in a core's buffer visible.
void heddle_private_drain(struct heddle_private_pages *p, uint32_t core) {
  struct heddle_core_pages *buffer = &p->cores[core];
  if (buffer->view) {
    buffer->view = false;
    p->translations_outdated = true;
  }
  if (!buffer->n) return;
  mark_traced_store(p);
  for (uint32_t i = 0; i < buffer->n; i++) {
    if (p->has_views) publish_changes(p, buffer->space, buffer->copies[i]);
    else publish(p, buffer->space, buffer->copies[i]);
    release_copy(p, buffer->copies[i]);
  }
  buffer->n = 0;
  if (core == p->running_core) {
    p->traced_store.n = 0;
    flush_translations(p);
  } else if (buffer->thread == p->last_thread) {
    p->translations_outdated = true;
  }
}

// Drains another core on behalf of the running one. If the running core must drain, it does so
// first.
static void drain_core(struct heddle_private_pages *p, uint32_t core) {
  if (p->running_core != HEDDLE_NO_CORE && p->must_drain) heddle_private_drain(p, p->running_core);
  uint64_t version = *p->space ? (*p->space)->version : 0;
  heddle_private_drain(p, core);
  // A page of a snapshot was copied, and the engine may still have the old one.
  if (p->running_core != HEDDLE_NO_CORE && (*p->space)->version != version) flush_translations(p);
}

// Drains the core that has stores of the thread in its buffer, if there is one.
static void drain_thread(struct heddle_private_pages *p, uint32_t thread) {
  for (uint32_t core = 0; core < p->ncores; core++)
    if (p->cores[core].n && p->cores[core].thread == thread) drain_core(p, core);
}

// ---- accesses of the running core -------------------------------------------

// The largest number of stores to contended pages that are traced in one run.
#define TRACED 4u

static uint32_t page_at(const struct heddle_private_pages *p, uint64_t va) {
  return PAGE(heddle_space_get(*p->space, va));
}

// Records the access of the running thread to the page at va. Returns whether no other thread
// shares the page. A thread that was the only one before drains its buffer: what it has stored to
// this page follows the stores that wait there.
static bool claim_page(struct heddle_private_pages *p, uint64_t va, uint32_t page) {
  uint32_t state = p->state[page], me = p->cores[p->running_core].thread;
  if (!state) p->state[page] = state = ONLY(me);
  if (!has_only_thread(state)) return false;
  if (only_thread(state) == me) return true;
  drain_thread(p, only_thread(state));
  p->state[page_at(p, va)] = state & HANDED_ON ? SHARED : ONLY(me) | HANDED_ON;
  return !(state & HANDED_ON);
}

static uint64_t with_page(uint64_t pte, uint32_t page) {
  return (pte & (HEDDLE_PAGE_SIZE - 1)) | (uint64_t)page << HEDDLE_PAGE_SHIFT;
}

static struct heddle_private_page *make_copy(struct heddle_private_pages *p, uint64_t va, uint32_t page) {
  struct heddle_core_pages *buffer = &p->cores[p->running_core];
  if (!buffer->n) buffer->made = *p->clock;
  uint32_t own = take_page(p);
  memcpy(bytes_of(p, own), bytes_of(p, page), HEDDLE_PAGE_SIZE);
  return add_copy(p, p->running_core, va, page, own);
}

// Drains the other cores that have copies of the page; with only_full, only a core that may have
// stored to any byte of its copy.
static void drain_others(struct heddle_private_pages *p, uint64_t va, uint32_t *page, bool only_full) {
  struct heddle_private_page *o;
  while ((o = copy_of_another(p, *page, p->running_core)) && (o->full || !only_full)) {
    p->state[*page] |= CONTENDED;
    drain_core(p, o->core);
    *page = page_at(p, va);
  }
}

// Adds a part of the store that is about to be executed.
static void note_store_part(struct heddle_private_pages *p, uint32_t copy, uint32_t from, uint32_t size) {
  struct heddle_traced_store *s = &p->traced_store;
  if (!s->n) s->at = p->functions->instructions(p->engine);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->parts[i].copy == copy) return;
  s->parts[s->n].copy = copy;
  s->parts[s->n].from = from;
  s->parts[s->n++].size = size;
}

static bool is_traced(const struct heddle_private_pages *p, const struct heddle_private_page *c) {
  for (uint32_t i = 0; i < p->traced_store.n; i++)
    if (&p->copies[p->traced_store.parts[i].copy] == c) return true;
  return false;
}

// Finds the bytes that the instruction which is executed alone stores to, if they are known.
static bool find_store(struct heddle_private_pages *p, uint64_t *at, uint32_t *size) {
  if (!p->functions->find_store(p->engine, p->pc, at, size)) return false;
  return *size <= (OFFSET(*at) + *size > HEDDLE_PAGE_SIZE ? 8 : 16);
}

// Starts to trace a store to the contended page by an instruction that is about to be executed
// alone. Returns false if the bytes that it changes are not known.
static bool trace_store(struct heddle_private_pages *p, uint64_t va, uint32_t page) {
  uint64_t at;
  uint32_t size;
  if (!find_store(p, &at, &size)) return false;
  uint64_t start = at > START(va) ? at : START(va), end = START(va) + HEDDLE_PAGE_SIZE;
  if (end > at + size) end = at + size;
  if (start >= end) return false;
  struct heddle_private_page *c = copy_of(p, page, p->running_core);
  if (!c) c = make_copy(p, va, page);
  note_store_part(p, (uint32_t)(c - p->copies), (uint32_t)OFFSET(start), (uint32_t)(end - start));
  p->ntraced++;
  return true;
}

// The largest number of copies at one time.
#define HELD (HEDDLE_PRIVATE_PAGES / 16)

// Stores to the shared page itself, after draining, since there is no room for more copies.
static enum heddle_walk store_in_place(struct heddle_private_pages *p, uint64_t va, uint32_t page, uint64_t *pte) {
  drain_others(p, va, &page, false);
  heddle_private_drain(p, p->running_core);
  p->must_drain = p->stored_in_place = true;
  *pte = with_page(*pte, page_at(p, va));
  return HEDDLE_WALK_OK;
}

// The running core is about to store to a page that several threads access. If others have copies
// of it, the instruction is executed alone, so that the stores that they drain come before or after
// the whole instruction.
static enum heddle_walk store_shared(struct heddle_private_pages *p, uint64_t va, uint32_t page, uint64_t *pte) {
  mark_traced_store(p);
  struct heddle_private_page *c = copy_of(p, page, p->running_core);
  bool mine = c && c->full;
  bool traceable = (p->state[page] & CONTENDED) && !mine && (p->ntraced < TRACED || is_traced(p, c));
  if ((traceable || copy_of_another(p, page, p->running_core)) && !p->functions->is_alone(p->engine) && !p->acquiring) {
    p->tracing = true;
    return HEDDLE_WALK_CODE;
  }
  drain_others(p, va, &page, true);
  if (p->nused >= HELD) return store_in_place(p, va, page, pte);
  c = copy_of(p, page, p->running_core);
  if (!(traceable && (is_traced(p, c) || trace_store(p, va, page)))) {
    drain_others(p, va, &page, false);
    c = copy_of(p, page, p->running_core);
    if (!c) c = make_copy(p, va, page);
    c->full = true;
  }
  c = copy_of(p, page, p->running_core);
  unshare_page(p, c);
  *pte = with_page(*pte, c->own);
  p->once = !c->full;
  return HEDDLE_WALK_OK;
}

// heddle_private_fill with views.
static void fill_view(struct heddle_private_pages *p, uint64_t va, enum heddle_access access, uint64_t *pte) {
  uint32_t page = PAGE(*pte);
  struct heddle_private_page *c;
  if (!p->cores[p->running_core].view) {
    if (access == HEDDLE_WRITE) keep_for_views(p, *p->space, va, page);
    else *pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
  } else if (access == HEDDLE_WRITE) {
    if ((c = changed_copy(p, va, page))) *pte = with_page(*pte, c->own);
  } else {
    c = copy_of(p, page, p->running_core);
    if (c) *pte = with_page(*pte, c->own);
    if (!c || c->own == c->twin || p->ram->refs[c->own] > 1) *pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
  }
}

// The engine asks for the translation of va, for which the page tables have *pte. Changes it to the
// page that the running core sees, and the rights that it has.
enum heddle_walk heddle_private_fill(struct heddle_private_pages *p, uint64_t va, enum heddle_access access,
                                     uint64_t *pte) {
  uint32_t page = PAGE(*pte);
  p->once = false;
  if (p->running_core == HEDDLE_NO_CORE || page == HEDDLE_ZERO_PAGE) return HEDDLE_WALK_OK;
  if (is_written_in_place(*pte)) {
    if (access == HEDDLE_WRITE) p->must_drain = p->stored_in_place = true;
    else *pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
    return HEDDLE_WALK_OK;
  }
  if (p->has_views) {
    fill_view(p, va, access, pte);
    return HEDDLE_WALK_OK;
  }
  bool only = claim_page(p, va, page);
  page = page_at(p, va);
  *pte = with_page(*pte, page);
  if (only) return HEDDLE_WALK_OK;
  if (access == HEDDLE_WRITE) return store_shared(p, va, page, pte);
  struct heddle_private_page *c = copy_of(p, page, p->running_core);
  *pte = with_page(*pte, c ? c->own : page);
  if (!c || !c->full) *pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
  return HEDDLE_WALK_OK;
}

// An instruction is about to be executed alone. No other core may drain between the load and the
// store of a locked one, and engines differ in what they do first. So everything that the store needs
// is done now.
static void acquire_operand(struct heddle_private_pages *p) {
  uint64_t pte, at;
  uint32_t size;
  if (!find_store(p, &at, &size)) return;
  p->acquiring = true;
  for (uint64_t va = START(at); va < at + size; va += HEDDLE_PAGE_SIZE) {
    mark_traced_store(p);
    if (heddle_space_walk(*p->space, va, HEDDLE_WRITE, false, &pte)) break;
    heddle_private_fill(p, va, HEDDLE_WRITE, &pte);
  }
  p->acquiring = false;
}

// The instruction at pc is about to be executed alone. order: its effect on the order of
// accesses. stores: it may store to memory of which the engine has no translation.
void heddle_private_alone(struct heddle_private_pages *p, uint64_t pc, uint32_t order, bool stores) {
  p->pc = pc;
  if (order & (HEDDLE_ORDER_LOCKED | HEDDLE_ORDER_FULL)) p->must_drain = true;
  if (stores && p->running_core != HEDDLE_NO_CORE) acquire_operand(p);
}

// ---- events of the page tables ----------------------------------------------

static void page_allocated(void *observer, uint64_t page) {
  struct heddle_private_pages *p = observer;
  p->state[page] = p->first_copy[page] = 0;
}

// A space has replaced a page by a copy of it. The stores that wait for the page in the space's cores
// are now for the copy; those of another process stay with the page.
static void page_copied(void *observer, const struct heddle_space *s, uint64_t to, uint64_t from) {
  struct heddle_private_pages *p = observer;
  p->state[to] = p->state[from];
  uint32_t *kept = &p->first_copy[from], *moved = &p->first_copy[to];
  for (uint32_t i = p->first_copy[from]; i; i = p->copies[i].next) {
    if (p->cores[p->copies[i].core].space == s) {
      p->copies[i].shared = (uint32_t)to;
      *moved = i;
      moved = &p->copies[i].next;
    } else {
      *kept = i;
      kept = &p->copies[i].next;
    }
  }
  *kept = *moved = 0;
}

// The stopped engine or the kernel is about to access va, whose entry is *pte. The kernel sees the
// shared pages without the stores that wait in buffers, except that a thread which is the only one
// to access the page is drained first: its stores to that page follow those in its buffer.
static void page_walked(void *observer, struct heddle_space *s, uint64_t va, enum heddle_access access, uint64_t *pte) {
  struct heddle_private_pages *p = observer;
  uint32_t page = PAGE(*pte);
  if (access == HEDDLE_FETCH || page == HEDDLE_ZERO_PAGE || is_written_in_place(*pte)) return;
  if (p->filling) return;
  if (p->tracing) {
    p->tracing = false;
    p->functions->isolate(p->engine);
    return;
  }
  if (p->running_core != HEDDLE_NO_CORE) {
    if (p->has_views && access == HEDDLE_WRITE) fill_view(p, va, access, pte);
    else *pte = heddle_private_seen(p, *pte);
    return;
  }
  if (p->has_views) {
    if (access == HEDDLE_WRITE) keep_for_views(p, s, va, page);
    return;
  }
  if (has_only_thread(p->state[page])) drain_thread(p, only_thread(p->state[page]));
  while (access == HEDDLE_WRITE && p->first_copy[page]) heddle_private_drain(p, p->copies[p->first_copy[page]].core);
  *pte = with_page(*pte, PAGE(heddle_space_get(s, va)));
}

// Returns the entry as the running core sees it.
uint64_t heddle_private_seen(const struct heddle_private_pages *p, uint64_t pte) {
  if (p->running_core == HEDDLE_NO_CORE || !pte || is_written_in_place(pte)) return pte;
  struct heddle_private_page *c = copy_of(p, PAGE(pte), p->running_core);
  return c ? with_page(pte, c->own) : pte;
}

// Discards the stores in a core's buffer, and ends a view.
void heddle_private_discard(struct heddle_private_pages *p, uint32_t core) {
  struct heddle_core_pages *buffer = &p->cores[core];
  buffer->view = false;
  for (uint32_t i = 0; i < buffer->n; i++) {
    unlink_copy(p, buffer->copies[i]);
    release_copy(p, buffer->copies[i]);
  }
  buffer->n = 0;
}

// The space no longer exists, and with it the stores that wait for its pages.
static void space_cleared(void *observer, const struct heddle_space *s) {
  struct heddle_private_pages *p = observer;
  for (uint32_t core = 0; core < p->ncores; core++)
    if (p->cores[core].space == s) heddle_private_discard(p, core);
}

static void kernel_read(void *observer, uint64_t page, uint64_t va, size_t n) {
  (void)observer, (void)page, (void)va, (void)n;
}

static void kernel_wrote(void *observer, uint64_t page, uint64_t va, const void *bytes, size_t n) {
  (void)observer, (void)page, (void)va, (void)bytes, (void)n;
}

static void page_changed(void *observer, uint64_t page) { (void)observer, (void)page; }

static uint64_t page_seen(void *observer, uint64_t pte) { return heddle_private_seen(observer, pte); }

static const struct heddle_observer observer_functions = {
    .allocated = page_allocated, .copied = page_copied, .read = kernel_read, .written = kernel_wrote,
    .changed = page_changed, .cleared = space_cleared, .walked = page_walked, .seen = page_seen,
};

// ---- runs -------------------------------------------------------------------

// Makes cores views, of any number of threads, for the rest of the run. Core 0 stays the shared memory.
void heddle_private_use_views(struct heddle_private_pages *p) { p->has_views = true; }

static void make_cores(struct heddle_private_pages *p, uint32_t n) {
  if (n <= p->ncores) return;
  p->cores = realloc(p->cores, n * sizeof *p->cores);
  if (!p->cores) abort();
  memset(p->cores + p->ncores, 0, (n - p->ncores) * sizeof *p->cores);
  p->ncores = n;
}

// The core, which has no copies, is from now on the thread's view of the space.
void heddle_private_view(struct heddle_private_pages *p, uint32_t core, uint32_t thread, struct heddle_space *s) {
  make_cores(p, core + 1);
  p->cores[core].view = true;
  p->cores[core].thread = thread;
  p->cores[core].space = s;
  p->translations_outdated = true;
}

// The loaded thread is about to run on the core.
void heddle_private_begin(struct heddle_private_pages *p, uint32_t core, uint32_t thread) {
  struct heddle_core_pages *buffer = &p->cores[core];
  buffer->thread = thread;
  buffer->space = *p->space;
  p->running_core = core;
  p->must_drain = p->stored_in_place = p->tracing = false;
  p->ntraced = 0;
  if (p->translations_outdated || p->last_thread != thread) p->functions->flush(p->engine, false);
  p->translations_outdated = false;
  p->last_thread = thread;
}

// The run has ended. Returns whether its core's buffer must be drained.
bool heddle_private_end(struct heddle_private_pages *p) {
  mark_traced_store(p);
  p->traced_store.n = 0;
  p->running_core = HEDDLE_NO_CORE;
  p->translations_outdated |= p->stored_in_place;
  return p->must_drain;
}

// ---- snapshots --------------------------------------------------------------

// Sets the state of pages to that of a snapshot, with empty buffers.
void heddle_private_reset(struct heddle_private_pages *p, const uint32_t *state, size_t n) {
  for (uint32_t core = 0; core < p->ncores; core++)
    if (p->cores[core].n || p->cores[core].view) space_cleared(p, p->cores[core].space);
  memset(p->first_copy, 0, p->ram->fresh * sizeof *p->first_copy);
  memset(p->state, 0, p->ram->fresh * sizeof *p->state);
  memcpy(p->state, state, n * sizeof *state);
  p->translations_outdated = true;
}

// Gives the core a copy that it had in a snapshot, of the page that is in the space now. Returns
// false if there is no such page.
bool heddle_private_restore(struct heddle_private_pages *p, uint32_t core, uint32_t thread, uint64_t made,
                            struct heddle_space *s,
                       const struct heddle_private_page *c) {
  uint64_t pte = heddle_space_get(s, c->va);
  if (!pte) return false;
  make_cores(p, core + 1);
  struct heddle_core_pages *buffer = &p->cores[core];
  buffer->thread = thread;
  buffer->made = made;
  buffer->space = s;
  p->ram->refs[c->own]++;
  struct heddle_private_page *n = add_copy(p, core, c->va, PAGE(pte), c->own);
  n->full = c->full;
  if ((n->twin = c->twin)) p->ram->refs[c->twin]++;
  memcpy(n->bytes, c->bytes, sizeof n->bytes);
  return true;
}

// ---- initialization ---------------------------------------------------------

// Starts to give cores private pages.
bool heddle_private_init(struct heddle_private_pages *p, const struct heddle_private_functions *functions, void *engine,
                         struct heddle_ram *ram, struct heddle_space **space, const uint64_t *clock, uint32_t cores) {
  *p = (struct heddle_private_pages){.functions = functions, .engine = engine, .ram = ram, .space = space, .clock = clock,
                                     .ncores = cores, .running_core = HEDDLE_NO_CORE, .ncopies = 1, .room = 64};
  p->last_thread = UINT64_MAX;
  p->state = heddle_reserve(ram->pages * sizeof *p->state);
  p->first_copy = heddle_reserve(ram->pages * sizeof *p->first_copy);
  p->copies = malloc(p->room * sizeof *p->copies);
  p->cores = calloc(p->ncores, sizeof *p->cores);
  if (!p->state || !p->first_copy || !p->copies || !p->cores) return false;
  ram->observer = &observer_functions;
  ram->observed_by = p;
  return true;
}

void heddle_private_free(struct heddle_private_pages *p) {
  heddle_unreserve(p->state, p->ram->pages * sizeof *p->state);
  heddle_unreserve(p->first_copy, p->ram->pages * sizeof *p->first_copy);
  for (uint32_t i = 0; p->cores && i < p->ncores; i++) free(p->cores[i].copies);
  free(p->cores);
  free(p->copies);
  if (p->ram->observed_by == p) p->ram->observer = NULL;
}
