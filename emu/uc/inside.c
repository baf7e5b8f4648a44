// What heddle_insides needs of the engine.
#include "run.h"

#include "insidelog.h"

static bool describe(void *engine, uint64_t pc, struct heddle_insn_facts *out) {
  struct heddle_cpu *cpu = engine;
  ZydisDecodedInstruction in;
  uint8_t unused = 0;
  int n = heddle_cpu_accesses(cpu, pc, &in, out->accesses, 4);
  if (n < 0) return false;
  out->n = (uint32_t)n;
  out->cost = heddle_cost(cpu, &in, &unused);
  out->atomic = heddle_is_atomic(&in);
  out->calls = in.meta.category == ZYDIS_CATEGORY_CALL;
  return true;
}

static uint64_t pc_of(void *engine) { return get_rip(engine); }

static void registers_of(void *engine, struct heddle_regs *out) { heddle_cpu_get_regs(engine, out); }

static enum heddle_stop execute(void *engine, uint64_t pc) { return heddle_step_instruction(engine, pc); }

static void pass(void *engine, uint64_t pc) { heddle_pass_end(engine, pc); }

static void set_fault(void *engine, uint64_t address, enum heddle_access access, enum heddle_walk kind) {
  struct heddle_cpu *cpu = engine;
  cpu->run.fault_access = access;
  cpu->run.fault_kind = kind;
  cpu->run.fault_page = address;
  cpu->run.fault_ahead = false;
}

static uint32_t highest_cost(void *engine) { return heddle_highest_cost(engine); }

static bool at_limit(void *engine) { return until_exact_limit(engine) <= 0; }

static bool waits(void *engine) {
  const struct heddle_cpu *cpu = engine;
  return cpu->buffers || cpu->private_pages;
}

static uint64_t branches(void *engine) { return heddle_cpu_branches_now(engine); }

static void log_pages(void *engine, struct heddle_space *space, const struct heddle_inside *in) {
  heddle_inside_log_pages(&((struct heddle_cpu *)engine)->logs.memory.core, space, in);
}

static void log_pieces(void *engine, struct heddle_space *space, const struct heddle_inside *in, uint32_t from,
                       uint32_t upto) {
  heddle_inside_log_pieces(&((struct heddle_cpu *)engine)->logs.memory.core, space, in, from, upto);
}

static void unlog(void *engine) { heddle_mem_undo(&((struct heddle_cpu *)engine)->logs.memory.core); }

static const struct heddle_inside_functions functions = {
    .describe = describe, .pc = pc_of, .registers = registers_of, .execute = execute, .pass = pass,
    .set_fault = set_fault, .highest_cost = highest_cost, .at_limit = at_limit, .waits = waits,
    .branches = branches, .log_pages = log_pages, .log_pieces = log_pieces, .unlog = unlog,
};

void heddle_cpu_init_inside(struct heddle_cpu *cpu) {
  cpu->inside = (struct heddle_insides){.functions = &functions, .engine = cpu, .ram = cpu->ram, .space = &cpu->space,
                                        .buffers = &cpu->buffers, .instructions = &cpu->run.instructions_left,
                                        .cycles = &cpu->run.cycles_left};
}

// Reports whether the run may end inside an instruction of the block [pc, end). Then its
// instructions are executed one by one.
bool heddle_cpu_ends_inside(struct heddle_cpu *cpu, uint64_t pc, uint64_t end) {
  if (!cpu->inside.choice) return false;
  int64_t instructions = cpu->run.instructions_left, cycles = cpu->run.cycles_left;
  if (instructions < 0 || cycles <= 0) return false;
  while (pc < end) {
    ZydisDecodedInstruction in;
    if (!heddle_decode(cpu, pc, &in)) return false;
    uint8_t unused = 0;
    uint32_t cost = heddle_cost(cpu, &in, &unused);
    if (!instructions || cycles < (int64_t)cost) return heddle_touches_memory(&in) && !heddle_is_atomic(&in);
    instructions--;
    cycles -= cost;
    if (cycles <= 0) return false;
    pc += in.length;
  }
  return false;
}
