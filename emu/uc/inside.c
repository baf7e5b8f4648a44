#include "inside.h"

#include <string.h>

#include "buffers.h"
#include "run.h"
#include "private.h"

// The bits of a choice that make a thread which is inside an instruction stay there for one more
// access, with probability 1/4.
#define STAY_SHIFT 24
#define STAY_MASK 3u

#define OFFSET(address) ((address) & (HEDDLE_PAGE_SIZE - 1))

// ---- the places inside an instruction ---------------------------------------

// Divides accesses at cache lines. Returns the number of pieces, 0 if there are too many.
static uint32_t cut_at_lines(const struct heddle_insn_access *accesses, int n, struct heddle_piece *out) {
  uint32_t pieces = 0;
  for (int i = 0; i < n; i++) {
    struct heddle_piece p = {.addr = accesses[i].at, .size = accesses[i].size, .stores = accesses[i].stores};
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
bool heddle_cpu_pieces(struct heddle_cpu *cpu, uint64_t pc, struct heddle_inside *out) {
  ZydisDecodedInstruction in;
  struct heddle_insn_access accesses[4];
  int n = heddle_cpu_accesses(cpu, pc, &in, accesses, 4);
  *out = (struct heddle_inside){.pc = pc};
  if (n <= 0 || heddle_is_atomic(&in)) return false;
  out->n = cut_at_lines(accesses, n, out->pieces);
  while (out->loads < out->n && !out->pieces[out->loads].stores) out->loads++;
  // The stores of a call count as one: the branch lies between them.
  bool buffered = cpu->buffers || cpu->private_pages || in.meta.category == ZYDIS_CATEGORY_CALL;
  out->places = buffered && out->n > out->loads ? out->loads + 1 : out->n;
  uint8_t unused = 0;
  out->cost = heddle_cost(cpu, &in, &unused);
  return out->places > 1;
}

// Returns the number of pieces after which the run ends, if its budget ends before or within the
// instruction; 0: the run ends before the instruction, or not here.
static uint32_t choose_place(const struct heddle_cpu *cpu, const struct heddle_inside *in) {
  if (cpu->run.inside_choice & HEDDLE_INSIDE_EXACTLY) {
    uint32_t n = cpu->run.inside_choice & ~HEDDLE_INSIDE_EXACTLY;
    return cpu->run.instructions_left == 0 && n < in->places ? n : 0;
  }
  if (cpu->run.instructions_left == 0) return cpu->run.inside_choice % in->places;
  if (cpu->run.cycles_left > 0 && cpu->run.cycles_left < (int64_t)in->cost)
    return (uint32_t)((uint64_t)cpu->run.cycles_left * in->places / in->cost);
  return 0;
}

// ---- accesses ---------------------------------------------------------------

// Returns the address on the host of a piece, as the running core sees it, or NULL. The piece lies
// in one page, which becomes the space's own for a store.
static uint8_t *memory_of(struct heddle_cpu *cpu, const struct heddle_piece *p) {
  uint64_t pte;
  enum heddle_access access = p->stores ? HEDDLE_WRITE : HEDDLE_READ;
  if (heddle_space_walk(cpu->space, p->addr, access, true, &pte)) return NULL;
  return cpu->ram->base + (pte & ~(HEDDLE_PAGE_SIZE - 1)) + OFFSET(p->addr);
}

static void load_piece(struct heddle_cpu *cpu, struct heddle_piece *p) {
  const uint8_t *memory = memory_of(cpu, p);
  if (memory) memcpy(p->bytes, memory, p->size);
}

static void write_bytes(struct heddle_cpu *cpu, uint8_t *memory, const uint8_t *bytes, size_t n) {
  memcpy(memory, bytes, n);
  heddle_ram_written(cpu->ram, (uint64_t)(memory - cpu->ram->base) >> HEDDLE_PAGE_SHIFT);
}

static void store_piece(struct heddle_cpu *cpu, const struct heddle_piece *p) {
  uint8_t *memory = memory_of(cpu, p);
  if (memory) write_bytes(cpu, memory, p->bytes, p->size);
}

// Reports whether an access of the instruction would fault. Then the engine executes it.
static bool would_fault(struct heddle_cpu *cpu, const struct heddle_inside *in) {
  for (uint32_t i = 0; i < in->n; i++)
    if (!memory_of(cpu, &in->pieces[i])) return true;
  return false;
}

// ---- the execution of the instruction ---------------------------------------

// The bytes in memory that those loaded earlier replace, while the instruction is executed.
struct displaced {
  uint8_t *memory;  // NULL: memory still has the bytes that were loaded
  uint8_t bytes[16];
};

// Writes the bytes that were loaded earlier to memory.
static void put_loaded_bytes(struct heddle_cpu *cpu, const struct heddle_inside *in, struct displaced *under) {
  for (uint32_t i = 0; i < in->done; i++) {
    const struct heddle_piece *p = &in->pieces[i];
    uint8_t *memory = memory_of(cpu, p);
    under[i].memory = NULL;
    if (!memory || !memcmp(memory, p->bytes, p->size)) continue;
    under[i].memory = memory;
    memcpy(under[i].bytes, memory, p->size);
    write_bytes(cpu, memory, p->bytes, p->size);
  }
}

static bool is_stored(const struct heddle_inside *in, uint64_t at) {
  for (uint32_t i = in->loads; i < in->n; i++)
    if (at - in->pieces[i].addr < in->pieces[i].size) return true;
  return false;
}

// Restores the bytes that put_loaded_bytes has replaced. The instruction's stores stay; for them
// the page may have been copied.
static void remove_loaded_bytes(struct heddle_cpu *cpu, const struct heddle_inside *in, const struct displaced *under,
                                uint64_t stores) {
  for (uint32_t i = 0; i < in->done; i++) {
    const struct heddle_piece *p = &in->pieces[i];
    if (!under[i].memory) continue;
    uint8_t *memory = memory_of(cpu, p), *was = under[i].memory;
    if (memory && memory != was) write_bytes(cpu, was, under[i].bytes, p->size);
    for (uint32_t k = 0; memory && k < p->size; k++)
      if (!is_stored(in, p->addr + k)) write_bytes(cpu, memory + k, &under[i].bytes[k], 1);
    if (cpu->buffers) heddle_buffers_hide(cpu->buffers, stores, p->addr, under[i].bytes, p->size);
  }
}

// Executes the interrupted instruction, with its stores only up to access number upto. Loads that
// are done read the same bytes again.
static enum heddle_stop execute_interrupted(struct heddle_cpu *cpu, struct heddle_inside *in, uint32_t upto) {
  struct displaced under[HEDDLE_PIECES];
  struct heddle_piece before[HEDDLE_PIECES];
  bool held = upto < in->n, regular = !would_fault(cpu, in);
  uint64_t stores = cpu->buffers ? cpu->buffers->tail : 0;
  if (regular) {
    heddle_mem_pages(cpu, in);
    put_loaded_bytes(cpu, in, under);
    memcpy(before, in->pieces, sizeof before);
    for (uint32_t i = upto; i < in->n; i++) load_piece(cpu, &before[i]);
  }
  int64_t instructions = cpu->run.instructions_left, cycles = cpu->run.cycles_left;
  _Static_assert(sizeof in->before == sizeof(struct heddle_regs), "one word each");
  if (held) heddle_cpu_get_regs(cpu, (struct heddle_regs *)in->before);
  enum heddle_stop why = heddle_step_instruction(cpu, in->pc);
  if (!regular) return why;
  remove_loaded_bytes(cpu, in, under, stores);
  if (why) return why;
  for (uint32_t i = in->loads; i < in->n; i++) load_piece(cpu, &in->pieces[i]);
  for (uint32_t i = in->n; i-- > upto;) store_piece(cpu, &before[i]);
  heddle_mem_undo(&cpu->logs.memory);
  heddle_mem_pieces(cpu, in, in->done, upto);
  in->done = upto;
  if (!held) return why;
  in->executed = 1;
  cpu->run.instructions_left = instructions;
  cpu->run.cycles_left = cycles;
  return why;
}

// Performs the accesses of the instruction until upto are done.
static enum heddle_stop perform_accesses(struct heddle_cpu *cpu, struct heddle_inside *in, uint32_t upto) {
  uint32_t from = in->done;
  in->branches = heddle_cpu_branches_now(cpu);
  if (!in->executed) {
    for (; in->done < upto && in->done < in->loads; in->done++) load_piece(cpu, &in->pieces[in->done]);
    heddle_mem_pieces(cpu, in, from, in->done);
    return in->done < upto || upto == in->n ? execute_interrupted(cpu, in, upto) : HEDDLE_STOP_NONE;
  }
  heddle_inside_commit(cpu, cpu->space, in, upto);
  return HEDDLE_STOP_NONE;
}

// Commits stores of an executed instruction in its space until upto of its accesses are done.
void heddle_inside_commit(struct heddle_cpu *cpu, struct heddle_space *space, struct heddle_inside *in, uint32_t upto) {
  struct heddle_space *loaded = cpu->space;
  cpu->space = space;
  heddle_mem_pages(cpu, in);
  in->branches = heddle_cpu_branches_now(cpu);
  uint32_t from = in->done;
  for (; in->done < upto; in->done++) store_piece(cpu, &in->pieces[in->done]);
  heddle_mem_pieces(cpu, in, from, upto);
  cpu->space = loaded;
}

// ---- ends of runs -----------------------------------------------------------

// Supplies the pages of the instruction's accesses, as the accesses themselves would.
static enum heddle_stop supply_pages(struct heddle_cpu *cpu, const struct heddle_inside *in) {
  for (uint32_t i = 0; i < in->n; i++) {
    const struct heddle_piece *p = &in->pieces[i];
    if (memory_of(cpu, p)) continue;
    uint64_t pte;
    cpu->run.fault_access = p->stores ? HEDDLE_WRITE : HEDDLE_READ;
    cpu->run.fault_kind = heddle_space_walk(cpu->space, p->addr, cpu->run.fault_access, true, &pte);
    cpu->run.fault_page = p->addr;
    cpu->run.fault_ahead = false;
    return cpu->run.fault_kind == HEDDLE_WALK_NO_MEMORY ? HEDDLE_STOP_NO_MEMORY : HEDDLE_STOP_FAULT;
  }
  return HEDDLE_STOP_NONE;
}

// Decides whether the run ends inside the instruction at pc. Returns BUDGET, with the accesses
// before that place done, NONE, or the reason for a stop if a page of the instruction is missing.
enum heddle_stop heddle_inside_end_run(struct heddle_cpu *cpu, uint64_t pc) {
  if (!cpu->run.inside_choice || cpu->run.interrupted.n || cpu->run.instructions_left < 0 || cpu->run.cycles_left <= 0)
    return HEDDLE_STOP_NONE;
  if (cpu->run.instructions_left && cpu->run.cycles_left >= (int64_t)heddle_highest_cost(cpu)) return HEDDLE_STOP_NONE;
  struct heddle_inside in;
  if (until_exact_limit(cpu) <= 0 || !heddle_cpu_pieces(cpu, pc, &in)) return HEDDLE_STOP_NONE;
  uint32_t place = choose_place(cpu, &in);
  if (!place) return HEDDLE_STOP_NONE;
  enum heddle_stop why = supply_pages(cpu, &in);
  if (why) return why;
  if (cpu->run.instructions_left) in.paid = (uint32_t)cpu->run.cycles_left;
  if (perform_accesses(cpu, &in, place)) return HEDDLE_STOP_NONE;
  cpu->run.cycles_left -= in.paid;
  cpu->run.interrupted = in;
  return HEDDLE_STOP_BUDGET;
}

// Reports whether the run may end inside an instruction of the block [pc, end). Then its
// instructions are executed one by one.
bool heddle_inside_may_end(struct heddle_cpu *cpu, uint64_t pc, uint64_t end) {
  if (!cpu->run.inside_choice) return false;
  int64_t instructions = cpu->run.instructions_left, cycles = cpu->run.cycles_left;
  if (instructions < 0 || cycles <= 0) return false;
  while (pc < end) {
    ZydisDecodedInstruction in;
    if (!heddle_decode(cpu, pc, &in)) return false;
    uint8_t unused = 0;
    uint32_t cost = heddle_cost(cpu, &in, &unused);
    if (!instructions || cycles < (int64_t)cost) return heddle_has_operand(&in) && !heddle_is_atomic(&in);
    instructions--;
    cycles -= cost;
    if (cycles <= 0) return false;
    pc += in.length;
  }
  return false;
}

// Performs some more accesses of the interrupted instruction if the run ends inside it again.
// Returns whether it does.
bool heddle_inside_resume(struct heddle_cpu *cpu) {
  struct heddle_inside *in = &cpu->run.interrupted;
  uint32_t choice = cpu->run.inside_choice, upto = in->done + 1;
  if (!in->n || !choice || upto >= in->places) return false;
  if (choice & HEDDLE_INSIDE_EXACTLY) {
    upto = choice & ~HEDDLE_INSIDE_EXACTLY;
    if (cpu->run.instructions_left || upto <= in->done || upto >= in->places) return false;
  } else if (choice >> STAY_SHIFT & STAY_MASK) {
    return false;
  }
  if (!in->executed && (get_rip(cpu) != in->pc || would_fault(cpu, in))) return false;
  return !perform_accesses(cpu, in, upto);
}

// Completes the interrupted instruction. If something else stops the run there, the result is not
// NONE.
enum heddle_stop heddle_inside_finish(struct heddle_cpu *cpu) {
  struct heddle_inside *in = &cpu->run.interrupted;
  if (!in->n) return HEDDLE_STOP_NONE;
  if (!in->executed && get_rip(cpu) != in->pc) {
    in->n = 0;  // the thread was interrupted: the instruction will start again
    return HEDDLE_STOP_NONE;
  }
  bool executed = in->executed;
  enum heddle_stop why = perform_accesses(cpu, in, in->n);
  if (why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY) return why;
  in->n = 0;
  if (why) return why;
  cpu->run.cycles_left += in->paid;
  if (executed) {
    cpu->run.instructions_left--;
    cpu->run.cycles_left -= in->cost;
  }
  heddle_pass_end(cpu, in->pc);
  return why;
}
