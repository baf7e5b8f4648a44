// Vector clocks. clock.go describes the operations.
#include "races.h"

#include <stdlib.h>
#include <string.h>

struct races_clock *races_new_clock(void) {
  struct races_clock *c = calloc(1, sizeof *c);
  if (!c) abort();
  return c;
}

void races_free_clock(struct races_clock *c) {
  if (!c) return;
  free(c->segments);
  free(c);
}

// Makes room for the segments of n threads.
static void make_clock_room(struct races_clock *c, uint32_t n) {
  if (n <= c->n) return;
  c->segments = races_allocate(c->segments, n, sizeof *c->segments);
  memset(c->segments + c->n, 0, (n - c->n) * sizeof *c->segments);
  c->n = n;
}

// Notes that the segments of a thread up to one have ended.
static void set_segment(struct races_clock *c, uint32_t thread, uint32_t segment) {
  make_clock_room(c, thread + 1);
  if (segment > c->segments[thread]) c->segments[thread] = segment;
}

// Makes c the later of both, for each thread.
static void join_clock(struct races_clock *c, const struct races_clock *other) {
  make_clock_room(c, other->n);
  for (uint32_t i = 0; i < other->n; i++)
    if (other->segments[i] > c->segments[i]) c->segments[i] = other->segments[i];
}

static void set_clock(struct races_clock *c, const struct races_clock *other) {
  make_clock_room(c, other->n);
  if (other->n) memcpy(c->segments, other->segments, other->n * sizeof *c->segments);
  for (uint32_t i = other->n; i < c->n; i++) c->segments[i] = 0;
}

struct races_clock *races_copy_clock(const struct races_clock *c) {
  struct races_clock *copy = races_new_clock();
  set_clock(copy, c);
  return copy;
}

// Ends the present segment of a thread.
static void end_segment(struct races_detector *d, uint32_t thread) {
  if (++d->threads[thread].segment == UINT32_MAX) d->full = true;
}

// Orders the later accesses of a thread after those before the releases.
void races_acquire(struct races_detector *d, uint32_t thread, const struct races_clock *c) {
  join_clock(&races_thread_at(d, thread)->ended, c);
}

// The counterpart of races_acquire. Earlier releases stay in effect unless this one replaces them.
void races_release(struct races_detector *d, uint32_t thread, struct races_clock *c, bool replaces) {
  const struct races_thread *t = races_thread_at(d, thread);
  if (replaces) set_clock(c, &t->ended);
  else join_clock(c, &t->ended);
  set_segment(c, thread, t->segment);
  if (!d->full) end_segment(d, thread);
}

// Releases for a thread that did so in a segment up to the present one.
void races_release_late(struct races_detector *d, uint32_t thread, uint32_t segment, struct races_clock *c) {
  const struct races_thread *t = races_thread_at(d, thread);
  join_clock(c, &t->ended);
  set_segment(c, thread, segment);
  if (segment == t->segment && !d->full) end_segment(d, thread);
}

// Orders the accesses of a thread after those of another one in its present segment and before.
void races_order(struct races_detector *d, uint32_t before, uint32_t after) {
  races_thread_at(d, before > after ? before : after);
  races_release(d, before, &d->threads[after].ended, false);
}

// A synchronization operation of the total order of all.
void races_next_position(struct races_detector *d, uint32_t thread) {
  struct races_thread *t = races_thread_at(d, thread);
  set_segment(&d->position, thread, t->segment);
  if (!d->full) end_segment(d, thread);
  set_clock(&t->ended, &d->position);
}
