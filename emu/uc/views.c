#define _GNU_SOURCE

#include "views.h"

#include "accesses.h"
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

// ---- who has touched a page -------------------------------------------------

// Of a page in state: 0, nobody; else the thread that alone has touched it,
// above these bits, or SHARED.
#define SHARED 1u      // several threads have
#define CONTENDED 2u   // ... and stored to it at once
#define HANDED_ON 4u   // another thread alone had touched it before
#define ALONE(thread) (((thread) + 1) << 3)

static bool is_alone(uint32_t state) { return state >> 3 != 0; }
static uint32_t alone(uint32_t state) { return (state >> 3) - 1; }

#define PAGE(pte) ((uint32_t)((pte) >> HEDDLE_PAGE_SHIFT))
#define START(address) ((address) & ~(HEDDLE_PAGE_SIZE - 1))
#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

static uint8_t *bytes_of(const struct heddle_views *v, uint32_t page) {
  return heddle_ram_bytes(v->ram, page);
}

// Pages that are written in place by all: whoever stores to one drains its
// buffer at the end of its run, until when nobody else looks.
static bool is_strong(uint64_t pte) { return pte & (HEDDLE_PTE_SHARED | HEDDLE_PTE_EXEC); }

// ---- pages of cores' own ----------------------------------------------------

// They are beyond what the guest may use, and not counted as used.
static uint32_t take_page(struct heddle_views *v) {
  struct heddle_ram *ram = v->ram;
  if (v->pages >= HEDDLE_VIEW_PAGES) abort();
  uint64_t page = ram->nfreed ? ram->freed[--ram->nfreed] : ram->fresh++;
  heddle_ram_written(ram, page);
  ram->refs[page] = 1;
  v->state[page] = v->held[page] = 0;
  v->pages++;
  return (uint32_t)page;
}

void heddle_views_unref(struct heddle_views *v, uint32_t page) {
  if (--v->ram->refs[page]) return;
  v->ram->freed[v->ram->nfreed++] = page;
  v->pages--;
}

// Makes the hold's own page one that no snapshot has.
static void own_page(struct heddle_views *v, struct heddle_hold *h) {
  if (v->ram->refs[h->own] == 1) return;
  uint32_t page = take_page(v);
  memcpy(bytes_of(v, page), bytes_of(v, h->own), HEDDLE_PAGE_SIZE);
  heddle_views_unref(v, h->own);
  h->own = page;
}

// ---- holds ------------------------------------------------------------------

static struct heddle_hold *hold_of(const struct heddle_views *v, uint32_t page, uint32_t core) {
  for (uint32_t i = v->held[page]; i; i = v->holds[i].next)
    if (v->holds[i].core == core) return &v->holds[i];
  return NULL;
}

// A hold of the page by another core.
static struct heddle_hold *others_hold(const struct heddle_views *v, uint32_t page, uint32_t core) {
  for (uint32_t i = v->held[page]; i; i = v->holds[i].next)
    if (v->holds[i].core != core) return &v->holds[i];
  return NULL;
}

static uint32_t new_number(struct heddle_views *v) {
  uint32_t i = v->unused;
  if (i) {
    v->unused = v->holds[i].next;
    return i;
  }
  if (v->nholds == v->room) {
    v->room *= 2;
    v->holds = realloc(v->holds, v->room * sizeof *v->holds);
    if (!v->holds) abort();
  }
  return v->nholds++;
}

static struct heddle_hold *add_hold(struct heddle_views *v, uint32_t core, uint64_t va, uint32_t page, uint32_t own) {
  struct heddle_view *view = &v->cores[core];
  if (view->n == view->room) {
    view->room = view->room ? 2 * view->room : 16;
    view->holds = realloc(view->holds, view->room * sizeof *view->holds);
    if (!view->holds) abort();
  }
  uint32_t i = new_number(v);
  struct heddle_hold *h = &v->holds[i];
  *h = (struct heddle_hold){.va = START(va), .shared = page, .own = own, .next = v->held[page], .core = (uint16_t)core};
  v->held[page] = i;
  view->holds[view->n++] = i;
  v->live++;
  return h;
}

// Takes the hold out of its page's list. False: the page is gone, and may be
// another one by now.
static bool unlink_hold(struct heddle_views *v, uint32_t i) {
  struct heddle_hold *h = &v->holds[i];
  for (uint32_t *at = &v->held[h->shared]; *at; at = &v->holds[*at].next) {
    if (*at != i) continue;
    *at = h->next;
    return true;
  }
  return false;
}

static void drop_hold(struct heddle_views *v, uint32_t i) {
  v->live--;
  heddle_views_unref(v, v->holds[i].own);
  v->holds[i].next = v->unused;
  v->unused = i;
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

// Puts what the hold's core has stored into the page that all see, and into
// other cores' own but for what those have stored themselves.
static void publish(struct heddle_views *v, struct heddle_space *s, uint32_t i) {
  uint64_t pte = heddle_space_own(s, v->holds[i].va);
  struct heddle_hold *h = &v->holds[i];
  if (!unlink_hold(v, i) || PAGE(pte) != h->shared) return;
  uint8_t *to = bytes_of(v, h->shared), *from = bytes_of(v, h->own);
  if (h->full) {
    memcpy(to, from, HEDDLE_PAGE_SIZE);
  } else {
    copy_marked(to, from, h->bytes, NULL);
    for (uint32_t k = v->held[h->shared]; k; k = v->holds[k].next) {
      struct heddle_hold *o = &v->holds[k];
      own_page(v, o);
      copy_marked(bytes_of(v, o->own), from, h->bytes, o->bytes);
    }
  }
  heddle_ram_written(v->ram, h->shared);
}

// The engine's translations are outdated. Inside the callback that fills them
// they can be flushed; otherwise that waits for the next start.
static void flush(struct heddle_views *v) {
  v->cpu->seen_space = NULL;
  if (v->running != HEDDLE_NO_CORE && !v->tracing) uc_ctl_flush_tlb(v->cpu->uc);
}

// Notes the bytes of the store that was being executed, if it has happened.
static void settle(struct heddle_views *v) {
  struct heddle_storing *s = &v->storing;
  if (!s->n || heddle_cpu_instructions_now(v->cpu) == s->at) return;
  for (uint32_t i = 0; i < s->n; i++) {
    struct heddle_hold *h = &v->holds[s->parts[i].hold];
    for (uint32_t b = s->parts[i].from; b < s->parts[i].from + s->parts[i].size; b++)
      h->bytes[b / 64] |= (uint64_t)1 << b % 64;
  }
  s->n = 0;
}

// Publishes all that waits in a core's buffer.
void heddle_views_drain(struct heddle_views *v, uint32_t core) {
  struct heddle_view *view = &v->cores[core];
  if (!view->n) return;
  settle(v);
  for (uint32_t i = 0; i < view->n; i++) {
    publish(v, view->space, view->holds[i]);
    drop_hold(v, view->holds[i]);
  }
  view->n = 0;
  if (core == v->running) {
    v->storing.n = 0;
    flush(v);
  } else if (view->thread == v->last) {
    v->outdated = true;
  }
}

// Drains another core for the running one's sake. What the running core has
// fenced off so far comes first.
static void drain_other(struct heddle_views *v, uint32_t core) {
  if (v->running != HEDDLE_NO_CORE && v->drain) heddle_views_drain(v, v->running);
  uint64_t version = v->cpu->space ? v->cpu->space->version : 0;
  heddle_views_drain(v, core);
  // A page that a snapshot has was copied, and the engine may know the old one.
  if (v->running != HEDDLE_NO_CORE && v->cpu->space->version != version) flush(v);
}

// Drains the core on which the thread's stores wait, if they do.
static void drain_thread(struct heddle_views *v, uint32_t thread) {
  for (uint32_t core = 0; core < v->ncores; core++)
    if (v->cores[core].n && v->cores[core].thread == thread) drain_other(v, core);
}

// ---- what the running core may do -------------------------------------------

// The most stores to contended pages that are traced in one run.
#define TRACED 4u

static uint32_t page_at(const struct heddle_views *v, uint64_t va) { return PAGE(heddle_space_get(v->cpu->space, va)); }

// Whether the thread that runs is the only one to have touched the page at va. If
// another was, it drains: what it has stored there is behind what waits.
static bool touch(struct heddle_views *v, uint64_t va, uint32_t page) {
  uint32_t state = v->state[page], me = v->cores[v->running].thread;
  if (!state) v->state[page] = state = ALONE(me);
  if (!is_alone(state)) return false;
  if (alone(state) == me) return true;
  drain_thread(v, alone(state));
  v->state[page_at(v, va)] = state & HANDED_ON ? SHARED : ALONE(me) | HANDED_ON;
  return !(state & HANDED_ON);
}

static uint64_t with_page(uint64_t pte, uint32_t page) {
  return (pte & (HEDDLE_PAGE_SIZE - 1)) | (uint64_t)page << HEDDLE_PAGE_SHIFT;
}

static struct heddle_hold *new_hold(struct heddle_views *v, uint64_t va, uint32_t page) {
  struct heddle_view *view = &v->cores[v->running];
  if (!view->n) view->made = v->cpu->clock;
  uint32_t own = take_page(v);
  memcpy(bytes_of(v, own), bytes_of(v, page), HEDDLE_PAGE_SIZE);
  return add_hold(v, v->running, va, page, own);
}

// Drains the other cores that hold the page, or only one that holds it alone.
static void resolve(struct heddle_views *v, uint64_t va, uint32_t *page, bool only_full) {
  struct heddle_hold *o;
  while ((o = others_hold(v, *page, v->running)) && (o->full || !only_full)) {
    v->state[*page] |= CONTENDED;
    drain_other(v, o->core);
    *page = page_at(v, va);
  }
}

// Notes a part of the store that is about to be executed.
static void note(struct heddle_views *v, uint32_t hold, uint32_t from, uint32_t size) {
  struct heddle_storing *s = &v->storing;
  if (!s->n) s->at = heddle_cpu_instructions_now(v->cpu);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->parts[i].hold == hold) return;
  s->parts[s->n].hold = hold;
  s->parts[s->n].from = from;
  s->parts[s->n++].size = size;
}

static bool is_noted(const struct heddle_views *v, const struct heddle_hold *h) {
  for (uint32_t i = 0; i < v->storing.n; i++)
    if (&v->holds[v->storing.parts[i].hold] == h) return true;
  return false;
}

// Begins to trace a store to the contended page, whose instruction is about to run
// alone. False: it cannot be told which bytes that changes.
static bool trace(struct heddle_views *v, uint64_t va, uint32_t page) {
  uint64_t at;
  uint32_t size;
  if (!heddle_cpu_stores(v->cpu, v->pc, &at, &size)) return false;
  uint64_t start = at > START(va) ? at : START(va), end = START(va) + HEDDLE_PAGE_SIZE;
  if (end > at + size) end = at + size;
  if (start >= end) return false;
  struct heddle_hold *h = hold_of(v, page, v->running);
  if (!h) h = new_hold(v, va, page);
  note(v, (uint32_t)(h - v->holds), (uint32_t)OFFSET(start), (uint32_t)(end - start));
  v->traced++;
  return true;
}

// The most pages that cores hold at once.
#define HELD (HEDDLE_VIEW_PAGES / 16)

// There is no room for more pages of cores' own: all that waits is drained.
static enum heddle_walk store_in_place(struct heddle_views *v, uint64_t va, uint32_t page, uint64_t *pte) {
  resolve(v, va, &page, false);
  heddle_views_drain(v, v->running);
  v->drain = v->strong = true;
  *pte = with_page(*pte, page_at(v, va));
  return HEDDLE_WALK_OK;
}

// The running core is about to store to a page that several threads touch. The
// instruction that does must run alone if others hold the page: what they drain
// comes before the instruction as a whole, or after it.
static enum heddle_walk store_shared(struct heddle_views *v, uint64_t va, uint32_t page, uint64_t *pte) {
  settle(v);
  struct heddle_hold *h = hold_of(v, page, v->running);
  bool mine = h && h->full;
  bool traceable = (v->state[page] & CONTENDED) && !mine && (v->traced < TRACED || is_noted(v, h));
  if ((traceable || others_hold(v, page, v->running)) && !v->cpu->stepping && !v->acquiring) {
    v->tracing = true;
    return HEDDLE_WALK_CODE;
  }
  resolve(v, va, &page, true);
  if (v->live >= HELD) return store_in_place(v, va, page, pte);
  h = hold_of(v, page, v->running);
  if (!(traceable && (is_noted(v, h) || trace(v, va, page)))) {
    resolve(v, va, &page, false);
    h = hold_of(v, page, v->running);
    if (!h) h = new_hold(v, va, page);
    h->full = true;
  }
  h = hold_of(v, page, v->running);
  own_page(v, h);
  *pte = with_page(*pte, h->own);
  if (!h->full) v->cpu->seen_space = NULL;  // the right to write is for this instruction only
  return HEDDLE_WALK_OK;
}

// The engine asks for the translation of va, which the page tables give as
// *pte: changes that to what the running core sees and may do.
enum heddle_walk heddle_views_fill(struct heddle_views *v, uint64_t va, enum heddle_access access, uint64_t *pte) {
  uint32_t page = PAGE(*pte);
  if (v->running == HEDDLE_NO_CORE || page == HEDDLE_ZERO_PAGE) return HEDDLE_WALK_OK;
  if (is_strong(*pte)) {
    if (access == HEDDLE_WRITE) v->drain = v->strong = true;
    else *pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
    return HEDDLE_WALK_OK;
  }
  bool only = touch(v, va, page);
  page = page_at(v, va);
  *pte = with_page(*pte, page);
  if (only) return HEDDLE_WALK_OK;
  if (access == HEDDLE_WRITE) return store_shared(v, va, page, pte);
  struct heddle_hold *h = hold_of(v, page, v->running);
  *pte = with_page(*pte, h ? h->own : page);
  if (!h || !h->full) *pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
  return HEDDLE_WALK_OK;
}

// A locked instruction is about to run, alone. Between its load and its store no
// other core may drain: so all that its store needs is done now.
static void acquire(struct heddle_views *v) {
  uint64_t at, pte;
  uint32_t size;
  if (!heddle_cpu_stores(v->cpu, v->pc, &at, &size)) return;
  v->acquiring = true;
  for (uint64_t va = START(at); va < at + size; va += HEDDLE_PAGE_SIZE) {
    settle(v);
    if (heddle_space_walk(v->cpu->space, va, HEDDLE_WRITE, false, &pte)) break;
    heddle_views_fill(v, va, HEDDLE_WRITE, &pte);
  }
  v->acquiring = false;
}

// The instruction at pc is about to run, alone.
void heddle_views_step(struct heddle_views *v, uint64_t pc, const ZydisDecodedInstruction *in) {
  v->pc = pc;
  uint32_t order = heddle_order_of(in);
  if (order & (HEDDLE_ORDER_LOCKED | HEDDLE_ORDER_FULL)) v->drain = true;
  if ((order & HEDDLE_ORDER_LOCKED) && v->running != HEDDLE_NO_CORE) acquire(v);
}

// ---- what the page tables tell ----------------------------------------------

static void page_allocated(void *observer, uint64_t page) {
  struct heddle_views *v = observer;
  v->state[page] = v->held[page] = 0;
}

// A space has a copy of a page in its place.
static void page_copied(void *observer, uint64_t to, uint64_t from) {
  struct heddle_views *v = observer;
  v->state[to] = v->state[from];
  v->held[to] = v->held[from];
  v->held[from] = 0;
  for (uint32_t i = v->held[to]; i; i = v->holds[i].next) v->holds[i].shared = (uint32_t)to;
}

// The stopped engine or the kernel is about to access va, which *pte is the
// entry of. The kernel finds what all see, and nothing that waits: stores to
// pages of one thread alone are behind those that wait.
static void page_walked(void *observer, struct heddle_space *s, uint64_t va, enum heddle_access access, uint64_t *pte) {
  struct heddle_views *v = observer;
  uint32_t page = PAGE(*pte);
  if (access == HEDDLE_FETCH || page == HEDDLE_ZERO_PAGE || is_strong(*pte)) return;
  if (v->tracing) {
    v->tracing = false;
    if (!v->cpu->resume_end) {
      uc_reg_read(v->cpu->uc, UC_X86_REG_RIP, &v->cpu->resume_end);
      v->cpu->resume_end++;
      v->cpu->resume_checked = false;
    }
    return;
  }
  if (v->running != HEDDLE_NO_CORE) {
    *pte = heddle_views_seen(v, *pte);
    return;
  }
  if (is_alone(v->state[page])) drain_thread(v, alone(v->state[page]));
  while (access == HEDDLE_WRITE && v->held[page]) heddle_views_drain(v, v->holds[v->held[page]].core);
  *pte = with_page(*pte, PAGE(heddle_space_get(s, va)));
}

// What the running core sees of the page of an entry.
uint64_t heddle_views_seen(const struct heddle_views *v, uint64_t pte) {
  if (v->running == HEDDLE_NO_CORE || !pte || is_strong(pte)) return pte;
  struct heddle_hold *h = hold_of(v, PAGE(pte), v->running);
  return h ? with_page(pte, h->own) : pte;
}

// The space is gone, and with it the stores that wait for its pages.
static void space_cleared(void *observer, const struct heddle_space *s) {
  struct heddle_views *v = observer;
  for (uint32_t core = 0; core < v->ncores; core++) {
    struct heddle_view *view = &v->cores[core];
    if (!view->n || view->space != s) continue;
    for (uint32_t i = 0; i < view->n; i++) {
      unlink_hold(v, view->holds[i]);
      drop_hold(v, view->holds[i]);
    }
    view->n = 0;
  }
}

static void kernel_read(void *observer, uint64_t page, uint64_t va, size_t n) {
  (void)observer, (void)page, (void)va, (void)n;
}

static void kernel_wrote(void *observer, uint64_t page, uint64_t va, const void *bytes, size_t n) {
  (void)observer, (void)page, (void)va, (void)bytes, (void)n;
}

static void page_changed(void *observer, uint64_t page) { (void)observer, (void)page; }

static uint64_t page_seen(void *observer, uint64_t pte) { return heddle_views_seen(observer, pte); }

const struct heddle_observer heddle_views_observer = {
    .allocated = page_allocated, .copied = page_copied, .read = kernel_read, .written = kernel_wrote,
    .changed = page_changed, .cleared = space_cleared, .walked = page_walked, .seen = page_seen,
};

// ---- runs -------------------------------------------------------------------

// The loaded thread is about to run on the core.
void heddle_views_begin(struct heddle_views *v, uint32_t core, uint32_t thread) {
  struct heddle_view *view = &v->cores[core];
  view->thread = thread;
  view->space = v->cpu->space;
  v->running = core;
  v->drain = v->strong = v->tracing = false;
  v->traced = 0;
  if (v->outdated || v->last != thread) v->cpu->seen_space = NULL;
  v->outdated = false;
  v->last = thread;
}

// The run is over. True: its core's buffer must be drained.
bool heddle_views_end(struct heddle_views *v) {
  settle(v);
  v->storing.n = 0;
  v->running = HEDDLE_NO_CORE;
  v->outdated |= v->strong;
  return v->drain;
}

// ---- snapshots --------------------------------------------------------------

// Makes the state of pages that of a snapshot, with nothing that waits.
void heddle_views_reset(struct heddle_views *v, const uint32_t *state, size_t n) {
  for (uint32_t core = 0; core < v->ncores; core++)
    if (v->cores[core].n) space_cleared(v, v->cores[core].space);
  memset(v->held, 0, v->ram->fresh * sizeof *v->held);
  memset(v->state, 0, v->ram->fresh * sizeof *v->state);
  memcpy(v->state, state, n * sizeof *state);
  v->outdated = true;
}

// Gives the core a hold that it had in a snapshot, of the page that is in the
// space now.
bool heddle_views_hold(struct heddle_views *v, uint32_t core, uint32_t thread, uint64_t made, struct heddle_space *s,
                       const struct heddle_hold *h) {
  uint64_t pte = heddle_space_get(s, h->va);
  if (!pte) return false;
  struct heddle_view *view = &v->cores[core];
  view->thread = thread;
  view->made = made;
  view->space = s;
  v->ram->refs[h->own]++;
  struct heddle_hold *n = add_hold(v, core, h->va, PAGE(pte), h->own);
  n->full = h->full;
  memcpy(n->bytes, h->bytes, sizeof n->bytes);
  return true;
}
