#include "inside.h"

#include <string.h>

#include "buffers.h"

// The bits of a choice that make a thread which is inside an instruction stay there for one more
// access, with probability 1/4.
#define STAY_SHIFT 24
#define STAY_MASK 3u

#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

// ---- the places inside an instruction ---------------------------------------

// Divides accesses at cache lines. Returns the number of pieces, 0 if there are too many.
static uint32_t cut_at_lines(const struct heddle_insn_facts *facts, struct heddle_piece *out) {
  uint32_t pieces = 0;
  for (uint32_t i = 0; i < facts->n; i++) {
    const struct heddle_insn_access *a = &facts->accesses[i];
    struct heddle_piece p = {.addr = a->at, .size = a->size, .stores = a->stores};
    for (uint32_t left = p.size; left;) {
      if (pieces == HEDDLE_PIECES) return 0;
      uint32_t room = HEDDLE_LINE_SIZE - (uint32_t)(p.addr % HEDDLE_LINE_SIZE);
      p.size = left < room ? left : room;
      out[pieces++] = p;
      p.addr += p.size;
      left -= p.size;
    }
  }
  return pieces;
}

// Finds the pieces of the instruction at pc. If stores wait in buffers, there is no place between
// two stores: the buffers decide when each becomes visible. Returns false if the instruction is
// atomic, or has no place inside.
static bool find_pieces(struct heddle_insides *x, uint64_t pc, struct heddle_inside *out) {
  struct heddle_insn_facts facts;
  *out = (struct heddle_inside){.pc = pc};
  if (!x->functions->describe(x->engine, pc, &facts) || facts.atomic) return false;
  out->n = cut_at_lines(&facts, out->pieces);
  while (out->loads < out->n && !out->pieces[out->loads].stores) out->loads++;
  // The stores of a call count as one: the branch lies between them.
  bool together = facts.calls || x->functions->waits(x->engine);
  out->places = together && out->n > out->loads ? out->loads + 1 : out->n;
  out->cost = facts.cost;
  return out->places > 1;
}

// Returns the number of pieces after which the run ends, if its budget ends before or within the
// instruction; 0: the run ends before the instruction, or not here.
static uint32_t choose_place(const struct heddle_insides *x, const struct heddle_inside *in) {
  if (x->choice & HEDDLE_INSIDE_EXACTLY) {
    uint32_t n = x->choice & ~HEDDLE_INSIDE_EXACTLY;
    return *x->instructions == 0 && n < in->places ? n : 0;
  }
  if (*x->instructions == 0) return x->choice % in->places;
  if (*x->cycles > 0 && *x->cycles < (int64_t)in->cost)
    return (uint32_t)((uint64_t)*x->cycles * in->places / in->cost);
  return 0;
}

// ---- accesses ---------------------------------------------------------------

// Returns the address on the host of a piece, as the running core sees it, or NULL. The piece lies
// in one page, which becomes the space's own for a store.
static uint8_t *memory_in(struct heddle_insides *x, struct heddle_space *space, const struct heddle_piece *p) {
  uint64_t pte;
  enum heddle_access access = p->stores ? HEDDLE_WRITE : HEDDLE_READ;
  if (heddle_space_walk(space, p->addr, access, true, &pte)) return NULL;
  return x->ram->base + (pte & ~(HEDDLE_PAGE_SIZE - 1)) + OFFSET(p->addr);
}

static uint8_t *memory_of(struct heddle_insides *x, const struct heddle_piece *p) { return memory_in(x, *x->space, p); }

static void load_piece(struct heddle_insides *x, struct heddle_piece *p) {
  const uint8_t *memory = memory_of(x, p);
  if (memory) memcpy(p->bytes, memory, p->size);
}

static void write_bytes(struct heddle_insides *x, uint8_t *memory, const uint8_t *bytes, size_t n) {
  memcpy(memory, bytes, n);
  heddle_ram_written(x->ram, (uint64_t)(memory - x->ram->base) >> HEDDLE_PAGE_SHIFT);
}

static void store_piece(struct heddle_insides *x, struct heddle_space *space, const struct heddle_piece *p) {
  uint8_t *memory = memory_in(x, space, p);
  if (memory) write_bytes(x, memory, p->bytes, p->size);
}

// Reports whether an access of the instruction would fault. Then the engine executes it.
static bool would_fault(struct heddle_insides *x, const struct heddle_inside *in) {
  for (uint32_t i = 0; i < in->n; i++)
    if (!memory_of(x, &in->pieces[i])) return true;
  return false;
}

// ---- the execution of the instruction ---------------------------------------

// The bytes in memory that those loaded earlier replace, while the instruction is executed.
struct displaced {
  uint8_t *memory;  // NULL: memory still has the bytes that were loaded
  uint8_t bytes[HEDDLE_ACCESS_BYTES];
};

// Writes the bytes that were loaded earlier to memory.
static void put_loaded_bytes(struct heddle_insides *x, const struct heddle_inside *in, struct displaced *under) {
  for (uint32_t i = 0; i < in->done; i++) {
    const struct heddle_piece *p = &in->pieces[i];
    uint8_t *memory = memory_of(x, p);
    under[i].memory = NULL;
    if (!memory || !memcmp(memory, p->bytes, p->size)) continue;
    under[i].memory = memory;
    memcpy(under[i].bytes, memory, p->size);
    write_bytes(x, memory, p->bytes, p->size);
  }
}

static bool is_stored(const struct heddle_inside *in, uint64_t at) {
  for (uint32_t i = in->loads; i < in->n; i++)
    if (at - in->pieces[i].addr < in->pieces[i].size) return true;
  return false;
}

// Restores the bytes that put_loaded_bytes has replaced. The instruction's stores stay; for them
// the page may have been copied.
static void remove_loaded_bytes(struct heddle_insides *x, const struct heddle_inside *in, const struct displaced *under,
                                uint64_t stores) {
  for (uint32_t i = 0; i < in->done; i++) {
    const struct heddle_piece *p = &in->pieces[i];
    if (!under[i].memory) continue;
    uint8_t *memory = memory_of(x, p), *was = under[i].memory;
    if (memory && memory != was) write_bytes(x, was, under[i].bytes, p->size);
    for (uint32_t k = 0; memory && k < p->size; k++)
      if (!is_stored(in, p->addr + k)) write_bytes(x, memory + k, &under[i].bytes[k], 1);
    if (*x->buffers) heddle_buffers_hide(*x->buffers, stores, p->addr, under[i].bytes, p->size);
  }
}

// Executes the interrupted instruction, with its stores only up to access number upto. Loads that
// are done read the same bytes again.
static enum heddle_stop execute_interrupted(struct heddle_insides *x, struct heddle_inside *in, uint32_t upto) {
  const struct heddle_inside_functions *f = x->functions;
  struct displaced under[HEDDLE_PIECES];
  struct heddle_piece before[HEDDLE_PIECES];
  bool held = upto < in->n, regular = !would_fault(x, in);
  uint64_t stores = *x->buffers ? (*x->buffers)->tail : 0;
  if (regular) {
    f->log_pages(x->engine, *x->space, in);
    put_loaded_bytes(x, in, under);
    memcpy(before, in->pieces, sizeof before);
    for (uint32_t i = upto; i < in->n; i++) load_piece(x, &before[i]);
  }
  int64_t instructions = *x->instructions, cycles = *x->cycles;
  if (held) f->registers(x->engine, &in->before);
  enum heddle_stop why = f->execute(x->engine, in->pc);
  if (!regular) return why;
  remove_loaded_bytes(x, in, under, stores);
  if (why) return why;
  for (uint32_t i = in->loads; i < in->n; i++) load_piece(x, &in->pieces[i]);
  for (uint32_t i = in->n; i-- > upto;) store_piece(x, *x->space, &before[i]);
  f->unlog(x->engine);
  f->log_pieces(x->engine, *x->space, in, in->done, upto);
  in->done = upto;
  if (!held) return why;
  in->executed = 1;
  *x->instructions = instructions;
  *x->cycles = cycles;
  return why;
}

// Performs the accesses of the instruction until upto are done.
static enum heddle_stop perform_accesses(struct heddle_insides *x, struct heddle_inside *in, uint32_t upto) {
  uint32_t from = in->done;
  in->branches = x->functions->branches(x->engine);
  if (!in->executed) {
    for (; in->done < upto && in->done < in->loads; in->done++) load_piece(x, &in->pieces[in->done]);
    x->functions->log_pieces(x->engine, *x->space, in, from, in->done);
    return in->done < upto || upto == in->n ? execute_interrupted(x, in, upto) : HEDDLE_STOP_NONE;
  }
  heddle_inside_commit(x, *x->space, in, upto);
  return HEDDLE_STOP_NONE;
}

// Commits stores of an executed instruction in its space until upto of its accesses are done.
void heddle_inside_commit(struct heddle_insides *x, struct heddle_space *space, struct heddle_inside *in, uint32_t upto) {
  x->functions->log_pages(x->engine, space, in);
  in->branches = x->functions->branches(x->engine);
  uint32_t from = in->done;
  for (; in->done < upto; in->done++) store_piece(x, space, &in->pieces[in->done]);
  x->functions->log_pieces(x->engine, space, in, from, upto);
}

// ---- ends of runs -----------------------------------------------------------

// Supplies the pages of the instruction's accesses, as the accesses themselves would.
static enum heddle_stop supply_pages(struct heddle_insides *x, const struct heddle_inside *in) {
  for (uint32_t i = 0; i < in->n; i++) {
    const struct heddle_piece *p = &in->pieces[i];
    if (memory_of(x, p)) continue;
    uint64_t pte;
    enum heddle_access access = p->stores ? HEDDLE_WRITE : HEDDLE_READ;
    enum heddle_walk kind = heddle_space_walk(*x->space, p->addr, access, true, &pte);
    x->functions->set_fault(x->engine, p->addr, access, kind);
    return kind == HEDDLE_WALK_NO_MEMORY ? HEDDLE_STOP_NO_MEMORY : HEDDLE_STOP_FAULT;
  }
  return HEDDLE_STOP_NONE;
}

// Decides whether the run ends inside the instruction at pc. Returns BUDGET, with the accesses
// before that place done, NONE, or the reason for a stop if a page of the instruction is missing.
enum heddle_stop heddle_inside_end(struct heddle_insides *x, uint64_t pc) {
  if (!x->choice || x->interrupted.n || *x->instructions < 0 || *x->cycles <= 0) return HEDDLE_STOP_NONE;
  if (*x->instructions && *x->cycles >= (int64_t)x->functions->highest_cost(x->engine)) return HEDDLE_STOP_NONE;
  struct heddle_inside in;
  if (x->functions->at_limit(x->engine) || !find_pieces(x, pc, &in)) return HEDDLE_STOP_NONE;
  uint32_t place = choose_place(x, &in);
  if (!place) return HEDDLE_STOP_NONE;
  enum heddle_stop why = supply_pages(x, &in);
  if (why) return why;
  if (*x->instructions) in.paid = (uint32_t)*x->cycles;
  if (perform_accesses(x, &in, place)) return HEDDLE_STOP_NONE;
  *x->cycles -= in.paid;
  x->interrupted = in;
  return HEDDLE_STOP_BUDGET;
}

// Performs some more accesses of the interrupted instruction if the run ends inside it again.
// Returns whether it does.
bool heddle_inside_stay(struct heddle_insides *x) {
  struct heddle_inside *in = &x->interrupted;
  uint32_t choice = x->choice, upto = in->done + 1;
  if (!in->n || !choice || upto >= in->places) return false;
  if (choice & HEDDLE_INSIDE_EXACTLY) {
    upto = choice & ~HEDDLE_INSIDE_EXACTLY;
    if (*x->instructions || upto <= in->done || upto >= in->places) return false;
  } else if (choice >> STAY_SHIFT & STAY_MASK) {
    return false;
  }
  if (!in->executed && (x->functions->pc(x->engine) != in->pc || would_fault(x, in))) return false;
  return !perform_accesses(x, in, upto);
}

// Completes the interrupted instruction. If something else stops the run there, the result is not
// NONE.
enum heddle_stop heddle_inside_finish(struct heddle_insides *x) {
  struct heddle_inside *in = &x->interrupted;
  if (!in->n) return HEDDLE_STOP_NONE;
  if (!in->executed && x->functions->pc(x->engine) != in->pc) {
    in->n = 0;  // the thread was interrupted: the instruction will start again
    return HEDDLE_STOP_NONE;
  }
  bool executed = in->executed;
  enum heddle_stop why = perform_accesses(x, in, in->n);
  if (why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY) return why;
  in->n = 0;
  if (why) return why;
  *x->cycles += in->paid;
  if (executed) {
    --*x->instructions;
    *x->cycles -= in->cost;
  }
  x->functions->pass(x->engine, in->pc);
  return why;
}
