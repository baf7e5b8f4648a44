// Declarations that the parts of a run share: hooks.c, which the engine calls, cpu.c, which starts
// and ends runs, and step.c, which executes instructions one by one.
#ifndef HEDDLE_RUN_H
#define HEDDLE_RUN_H

#include "cpu.h"

// The window on physical memory: address WINDOW + page number * page size is that page. It is open
// only during initialization and while the translated code of a page is removed, never while a
// guest runs.
#define WINDOW 0xffff800000000000u

#define VECTOR_DEBUG 1u
#define VECTOR_INVALID_OPCODE 6u
#define VECTOR_STACK 12u
#define VECTOR_PROTECTION 13u
#define VECTOR_FLOAT 16u
#define VECTOR_ALIGNMENT 17u

int heddle_hooks_add(struct heddle_cpu *cpu);
void heddle_enter_block(struct heddle_cpu *cpu, uint64_t pc);
uc_err heddle_start_engine(struct heddle_cpu *cpu);
void heddle_set_watched(struct heddle_cpu *cpu, uint32_t run_flags);
enum heddle_stop heddle_handle_failure(struct heddle_cpu *cpu, uc_err err);
enum heddle_stop heddle_handle_exception(struct heddle_cpu *cpu, bool software);
enum heddle_stop heddle_step_block(struct heddle_cpu *cpu, uint64_t from, uint64_t end);
void heddle_pass_end(struct heddle_cpu *cpu, uint64_t pc);
enum heddle_stop heddle_finish_block(struct heddle_cpu *cpu);
enum heddle_stop heddle_step_instruction(struct heddle_cpu *cpu, uint64_t pc);
void heddle_cpu_init_inside(struct heddle_cpu *cpu);
bool heddle_cpu_ends_inside(struct heddle_cpu *cpu, uint64_t pc, uint64_t end);
void heddle_cpu_close_private(struct heddle_cpu *cpu);

static inline bool heddle_logs_full(const struct heddle_cpu *cpu) {
  return cpu->logs.memory.core.full || heddle_log_full(&cpu->logs.flow);
}

static inline uint64_t get_rip(struct heddle_cpu *cpu) {
  uint64_t rip = 0;
  uc_reg_read(cpu->engine.uc, UC_X86_REG_RIP, &rip);
  return rip;
}

static inline uint64_t get_reg(struct heddle_cpu *cpu, int reg) {
  uint64_t value = 0;
  uc_reg_read(cpu->engine.uc, reg, &value);
  return value;
}

static inline void set_reg(struct heddle_cpu *cpu, int reg, uint64_t value) {
  uc_reg_write(cpu->engine.uc, reg, &value);
}

static inline bool is_stepping(const struct heddle_cpu *cpu) { return cpu->run.state == HEDDLE_STATE_STEP; }

// Has the run, after a stop within a block, continue with the rest of that block.
static inline void keep_rest(struct heddle_cpu *cpu, uint64_t end, bool checked) {
  cpu->run.rest_end = end;
  cpu->run.rest_checked = checked;
}

#define LARGEST_GRANT INT64_C(0x7fffffff)

static inline int64_t clamp_grant(int64_t left) {
  if (left < 0) return 0;
  return left < LARGEST_GRANT ? left : LARGEST_GRANT;
}

// Reports whether the run has reached the instruction that it halts before.
static inline bool is_halt_reached(const struct heddle_cpu *cpu) {
  return cpu->stops.halt_at && heddle_cpu_instructions_now(cpu) == cpu->stops.halt_at;
}

// Returns the number of instructions until the run halts.
static inline int64_t until_halt(const struct heddle_cpu *cpu) {
  uint64_t now = heddle_cpu_instructions_now(cpu);
  return cpu->stops.halt_at && cpu->stops.halt_at >= now ? (int64_t)(cpu->stops.halt_at - now) : INT64_MAX;
}

// Reports whether the run must stop for its caller to look at it.
static inline bool is_poll_due(const struct heddle_cpu *cpu) {
  return cpu->stops.poll_interval && heddle_cpu_instructions_now(cpu) >= cpu->stops.poll_at;
}

// Returns the number of instructions until then.
static inline int64_t until_poll(const struct heddle_cpu *cpu) {
  return cpu->stops.poll_interval ? (int64_t)(cpu->stops.poll_at - heddle_cpu_instructions_now(cpu)) : INT64_MAX;
}

// Returns the number of instructions until the run's exact limit.
static inline int64_t until_exact_limit(const struct heddle_cpu *cpu) {
  return cpu->run.exact_limit - (int64_t)heddle_cpu_instructions_now(cpu);
}

// Returns the number of instructions until blocks with PAUSE are examined.
static inline int64_t until_pause_watch(const struct heddle_cpu *cpu) {
  uint64_t from = cpu->stops.pauses.stops_from;
  if (from == UINT64_MAX || (cpu->run.flags & HEDDLE_RUN_PAUSE)) return INT64_MAX;
  return (int64_t)(from - 1 - heddle_cpu_instructions_now(cpu));
}

// Grants a part of the budget to the block hooks, which compare cycles only.
static inline void grant_budget(struct heddle_cpu *cpu) {
  int64_t most = clamp_grant(cpu->run.instructions_left), cycles = clamp_grant(cpu->run.cycles_left);
  if (most > cycles) most = cycles;
  if (most > until_halt(cpu)) most = until_halt(cpu);
  if (most > until_exact_limit(cpu)) most = clamp_grant(until_exact_limit(cpu));
  if (most > until_poll(cpu)) most = clamp_grant(until_poll(cpu));
  if (most > until_pause_watch(cpu)) most = clamp_grant(until_pause_watch(cpu));
  cpu->run.instructions_left -= most;
  cpu->run.cycles_left -= most;
  cpu->run.granted = (uint64_t)most << 32 | (uint64_t)most;
}

static inline void reclaim_budget(struct heddle_cpu *cpu) {
  cpu->run.instructions_left += (uint32_t)cpu->run.granted;
  cpu->run.cycles_left += (int64_t)(cpu->run.granted >> 32);
  cpu->run.granted = 0;
}

static inline bool is_exhausted(const struct heddle_cpu *cpu) {
  return cpu->run.instructions_left <= 0 || cpu->run.cycles_left <= 0;
}

// Reports whether the run ends here even though the engine, not the program, has cut straight-line
// code here.
static inline bool is_at_exact_end(const struct heddle_cpu *cpu) {
  return ((cpu->run.flags & HEDDLE_RUN_EXACT) && is_exhausted(cpu)) || until_exact_limit(cpu) <= 0;
}

// Returns the number of instructions until the run ends exactly.
static inline int64_t until_exact_end(const struct heddle_cpu *cpu) {
  int64_t left = until_exact_limit(cpu);
  bool exact = cpu->run.flags & HEDDLE_RUN_EXACT;
  return exact && cpu->run.instructions_left < left ? cpu->run.instructions_left : left;
}

// Reports whether the run ends within the block because of its cycles.
static inline bool exceeds_cycles(const struct heddle_cpu *cpu, const struct heddle_block *b) {
  return (cpu->run.flags & HEDDLE_RUN_EXACT) && heddle_block_cost(b) > cpu->run.cycles_left;
}

static inline void stop_engine(struct heddle_cpu *cpu, enum heddle_stop why) {
  cpu->run.stop = why;
  uc_emu_stop(cpu->engine.uc);
}

#endif
