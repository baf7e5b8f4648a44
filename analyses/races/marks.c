// Marks. Each has the numbers of two things that marks have in common, so that it takes 16 bytes: the site, which is
// an instruction with its calls, and the epoch, in which its thread is in the same segment, has made as many
// synchronization operations, and less than 2^32 accesses. Numbers that no mark has any more are given again: once
// there are many, the marks are looked through, and then again when there are twice as many as were in use.
#include "races.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS ((uint32_t)1 << 20)

// ---- numbers ------------------------------------------------------------------------------

static void use_mark(struct races_detector *d, const struct races_mark *m) {
  if (!races_is_used(m)) return;
  d->sites[m->site].used = 1;
  d->epochs[m->epoch].used = 1;
}

static void use_word(struct races_detector *d, struct races_shadow *s, unsigned word) {
  for (unsigned n = 0; n < races_bits(s->starts[word]); n++) {
    const struct races_state *state = races_part_state(s, word, n);
    const struct races_reads *reads = races_further_reads(s, word, n);
    use_mark(d, &state->write);
    use_mark(d, &state->read);
    for (uint32_t i = 0; reads && i < reads->n; i++) use_mark(d, &reads->marks[i]);
  }
}

static uint32_t hash_site(const struct races_detector *d, uint64_t what, uint32_t stack) {
  uint64_t h = (what ^ (uint64_t)stack * 0xbf58476d1ce4e5b9u) * 0x9e3779b97f4a7c15u;
  return (uint32_t)(h >> 32) & (uint32_t)(2 * d->sites_room - 1);
}

static void insert_site(struct races_detector *d, uint32_t n) {
  uint32_t at = hash_site(d, d->sites[n].what, d->sites[n].stack), mask = (uint32_t)(2 * d->sites_room - 1);
  while (d->site_table[at]) at = (at + 1) & mask;
  d->site_table[at] = n;
}

// The numbers up to n->n of which some are in use are to be given from the first one on.
static void give_again(struct races_numbers *n, uint32_t used) {
  n->next = 1;
  n->most = 2 * used > NUMBERS ? 2 * used : NUMBERS;
  if (n->most < n->n) n->most = n->n;
}

// Finds the numbers that marks have.
static void look_for_marks(struct races_detector *d) {
  uint32_t sites = 0, epochs = 0;
  for (uint32_t i = 1; i <= d->site_numbers.n; i++) d->sites[i].used = 0;
  for (uint32_t i = 1; i <= d->epoch_numbers.n; i++) d->epochs[i].used = 0;
  for (size_t i = 0; i < d->pages.room; i++) {
    struct races_page *p = d->pages.keys[i] ? (struct races_page *)(uintptr_t)d->pages.values[i] : NULL;
    for (unsigned word = 0; p && p->shadow && word < PAGE_WORDS; word++) use_word(d, p->shadow, word);
  }
  memset(d->site_table, 0, 2 * d->sites_room * sizeof *d->site_table);
  for (uint32_t i = 1; i <= d->site_numbers.n; i++) {
    sites += d->sites[i].used;
    if (d->sites[i].used) insert_site(d, i);
  }
  for (uint32_t i = 1; i <= d->epoch_numbers.n; i++) epochs += d->epochs[i].used;
  for (size_t i = 0; i < d->nthreads; i++) d->threads[i].epoch = 0;
  give_again(&d->site_numbers, sites);
  give_again(&d->epoch_numbers, epochs);
}

static bool has_numbers(const struct races_numbers *n) { return n->next <= n->n || n->n < n->most; }

// ---- sites --------------------------------------------------------------------------------

static void enlarge_sites(struct races_detector *d) {
  d->sites_room = d->sites_room ? 2 * d->sites_room : 1024;
  d->sites = races_allocate(d->sites, d->sites_room, sizeof *d->sites);
  free(d->site_table);
  d->site_table = calloc(2 * d->sites_room, sizeof *d->site_table);
  if (!d->site_table) abort();
  for (uint32_t i = 1; i <= d->site_numbers.n; i++)
    if (d->sites[i].used) insert_site(d, i);
}

static __attribute__((noinline)) uint32_t add_site(struct races_detector *d, uint64_t what, uint32_t stack) {
  struct races_numbers *n = &d->site_numbers;
  while (n->next <= n->n && d->sites[n->next].used) n->next++;
  if (n->next + 1 > d->sites_room) enlarge_sites(d);
  if (n->next > n->n) n->n = n->next;
  d->sites[n->next] = (struct races_site){what, stack, 1};
  insert_site(d, n->next);
  return n->next++;
}

static inline uint32_t find_site(struct races_detector *d, uint64_t what, uint32_t stack) {
  uint32_t mask = (uint32_t)(2 * d->sites_room - 1);
  for (uint32_t at = hash_site(d, what, stack); d->site_table[at]; at = (at + 1) & mask) {
    const struct races_site *s = &d->sites[d->site_table[at]];
    if (s->what == what && s->stack == stack) return d->site_table[at];
  }
  return add_site(d, what, stack);
}

// ---- epochs -------------------------------------------------------------------------------

static __attribute__((noinline)) uint32_t add_epoch(struct races_detector *d, const struct races_epoch *e) {
  struct races_numbers *n = &d->epoch_numbers;
  while (n->next <= n->n && d->epochs[n->next].used) n->next++;
  if (n->next + 1 > d->epochs_room) {
    d->epochs_room = d->epochs_room ? 2 * d->epochs_room : 1024;
    d->epochs = races_allocate(d->epochs, d->epochs_room, sizeof *d->epochs);
  }
  if (n->next > n->n) n->n = n->next;
  d->epochs[n->next] = *e;
  return n->next++;
}

// The epoch of an access of a thread at a place in the trace.
static inline uint32_t find_epoch(struct races_detector *d, uint32_t thread, uint64_t at) {
  struct races_thread *t = &d->threads[thread];
  const struct races_epoch *e = &d->epochs[t->epoch];
  uint32_t syncs = (uint32_t)t->syncs;
  if (t->epoch && e->segment == t->segment && e->syncs == syncs && at - e->at <= UINT32_MAX) return t->epoch;
  return t->epoch = add_epoch(d, &(struct races_epoch){.at = at, .thread = thread, .segment = t->segment, .syncs = syncs, .used = 1});
}

// ---- marks --------------------------------------------------------------------------------

static void begin_numbers(struct races_detector *d) {
  enlarge_sites(d);
  d->epochs_room = 1024;
  d->epochs = races_allocate(NULL, d->epochs_room, sizeof *d->epochs);
  d->site_numbers = d->epoch_numbers = (struct races_numbers){.next = 1, .most = NUMBERS};
}

// Returns the mark of the present access of a thread.
struct races_mark races_new_mark(struct races_detector *d, uint64_t what, uint32_t stack, uint32_t thread, uint64_t at, uint32_t branches) {
  if (!d->sites) begin_numbers(d);
  if (!has_numbers(&d->site_numbers) || !has_numbers(&d->epoch_numbers)) look_for_marks(d);
  uint32_t site = find_site(d, what, stack), epoch = find_epoch(d, thread, at);
  return (struct races_mark){site, epoch, (uint32_t)(at - d->epochs[epoch].at), branches};
}

struct races_description races_describe(const struct races_detector *d, const struct races_mark *m) {
  const struct races_site *s = &d->sites[m->site];
  const struct races_epoch *e = &d->epochs[m->epoch];
  return (struct races_description){
      .what = s->what, .when = (e->at + m->at) << THREAD_BITS | e->thread, .order = e->segment | (uint64_t)e->syncs << 32,
      .calls = s->stack | (uint64_t)m->branches << 32};
}

void races_free_marks(struct races_detector *d) {
  free(d->sites);
  free(d->site_table);
  free(d->epochs);
}
