// What the parts of a run share: hooks.c, which the engine calls, cpu.c, which starts and
// ends it, and step.c, which executes instructions one by one.
#ifndef HEDDLE_RUN_H
#define HEDDLE_RUN_H

#include "cpu.h"

// Addresses from here on are the window on physical memory: address + page
// number * page size. It is open only while the engine is set up and while
// translations of a physical page are thrown away, never while a guest runs.
#define WINDOW 0xffff800000000000u

#define VECTOR_DEBUG 1u
#define VECTOR_INVALID_OPCODE 6u
#define VECTOR_PROTECTION 13u

int heddle_hooks_add(struct heddle_cpu *cpu);
uint64_t heddle_rep_count(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in);
void heddle_come_to(struct heddle_cpu *cpu, uint64_t pc);
uc_err heddle_start(struct heddle_cpu *cpu);
void heddle_watch(struct heddle_cpu *cpu, uint32_t run_flags);
enum heddle_stop heddle_failed(struct heddle_cpu *cpu, uc_err err);
enum heddle_stop heddle_excepted(struct heddle_cpu *cpu, bool software);
enum heddle_stop heddle_step_block(struct heddle_cpu *cpu, uint64_t from, uint64_t end);
enum heddle_stop heddle_finish_block(struct heddle_cpu *cpu);
enum heddle_stop heddle_step_one(struct heddle_cpu *cpu, uint64_t pc);
enum heddle_stop heddle_inside_ends(struct heddle_cpu *cpu, uint64_t pc);
bool heddle_inside_may_end(struct heddle_cpu *cpu, uint64_t pc, uint64_t end);
bool heddle_inside_resume(struct heddle_cpu *cpu);
enum heddle_stop heddle_inside_finish(struct heddle_cpu *cpu);

static inline uint64_t get_rip(struct heddle_cpu *cpu) {
  uint64_t rip = 0;
  uc_reg_read(cpu->uc, UC_X86_REG_RIP, &rip);
  return rip;
}

static inline uint64_t get_reg(struct heddle_cpu *cpu, int reg) {
  uint64_t value = 0;
  uc_reg_read(cpu->uc, reg, &value);
  return value;
}

static inline void set_reg(struct heddle_cpu *cpu, int reg, uint64_t value) { uc_reg_write(cpu->uc, reg, &value); }

#define HANDED_OUT_MOST INT64_C(0x7fffffff)

static inline int64_t part(int64_t left) {
  if (left < 0) return 0;
  return left < HANDED_OUT_MOST ? left : HANDED_OUT_MOST;
}

// Whether the run has come to the instruction that it halts before.
static inline bool halts(const struct heddle_cpu *cpu) {
  return cpu->halt_at && heddle_cpu_instructions_now(cpu) == cpu->halt_at;
}

// How many instructions may run before the run halts.
static inline int64_t before_halt(const struct heddle_cpu *cpu) {
  uint64_t now = heddle_cpu_instructions_now(cpu);
  return cpu->halt_at && cpu->halt_at >= now ? (int64_t)(cpu->halt_at - now) : INT64_MAX;
}

// Whether it is time to stop as for a full log.
static inline bool looks(const struct heddle_cpu *cpu) {
  return cpu->look_every && heddle_cpu_instructions_now(cpu) >= cpu->look_at;
}

// How many instructions may run until then.
static inline int64_t before_look(const struct heddle_cpu *cpu) {
  return cpu->look_every ? (int64_t)(cpu->look_at - heddle_cpu_instructions_now(cpu)) : INT64_MAX;
}

// How many instructions may run at all.
static inline int64_t before_most(const struct heddle_cpu *cpu) {
  return cpu->most - (int64_t)heddle_cpu_instructions_now(cpu);
}

// How many instructions may run until PAUSE is looked for.
static inline int64_t before_pauses(const struct heddle_cpu *cpu) {
  uint64_t from = cpu->pauses.stops_from;
  if (from == UINT64_MAX || (cpu->run_flags & HEDDLE_RUN_PAUSE)) return INT64_MAX;
  return (int64_t)(from - 1 - heddle_cpu_instructions_now(cpu));
}

// Hands a part of the budget out to the block hook, which looks at cycles only.
static inline void hand_out(struct heddle_cpu *cpu) {
  int64_t most = part(cpu->instructions_left), cycles = part(cpu->cycles_left);
  if (most > cycles) most = cycles;
  if (most > before_halt(cpu)) most = before_halt(cpu);
  if (most > before_most(cpu)) most = part(before_most(cpu));
  if (most > before_look(cpu)) most = part(before_look(cpu));
  if (most > before_pauses(cpu)) most = part(before_pauses(cpu));
  cpu->instructions_left -= most;
  cpu->cycles_left -= most;
  cpu->left = (uint64_t)most << 32 | (uint64_t)most;
}

static inline void take_back(struct heddle_cpu *cpu) {
  cpu->instructions_left += (uint32_t)cpu->left;
  cpu->cycles_left += (int64_t)(cpu->left >> 32);
  cpu->left = 0;
}

static inline bool exhausted(const struct heddle_cpu *cpu) { return cpu->instructions_left <= 0 || cpu->cycles_left <= 0; }

// Whether the run ends here though the engine, not the program, has cut a straight
// run of instructions.
static inline bool ends_exactly(const struct heddle_cpu *cpu) {
  return ((cpu->run_flags & HEDDLE_RUN_EXACT) && exhausted(cpu)) || before_most(cpu) <= 0;
}

// How many instructions may run until the run ends exactly.
static inline int64_t before_exact(const struct heddle_cpu *cpu) {
  int64_t left = before_most(cpu);
  bool exact = cpu->run_flags & HEDDLE_RUN_EXACT;
  return exact && cpu->instructions_left < left ? cpu->instructions_left : left;
}

// Whether the run ends within the block because of its cycles.
static inline bool too_long(const struct heddle_cpu *cpu, const struct heddle_block *b) {
  return (cpu->run_flags & HEDDLE_RUN_EXACT) && heddle_block_cost(b) > cpu->cycles_left;
}

static inline void stop_now(struct heddle_cpu *cpu, enum heddle_stop why) {
  cpu->stop = why;
  uc_emu_stop(cpu->uc);
}

#endif
