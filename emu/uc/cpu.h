// The processor in C: runs, hooks, counting, stepping. See cpu.go.
#ifndef HEDDLE_CPU_H
#define HEDDLE_CPU_H

#include <Zydis/Zydis.h>
#include <unicorn/unicorn.h>

#include "atomics.h"
#include "block.h"
#include "buffers.h"
#include "inside.h"
#include "insnlog.h"
#include "log.h"
#include "memorylog.h"
#include "memory.h"
#include "operands.h"
#include "pause.h"
#include "private.h"
#include "stop.h"

// Flags of a run: additional reasons to stop.
#define HEDDLE_RUN_EXACT 1u  // stop at the first instruction at or after a budget
#define HEDDLE_RUN_PAUSE 2u
#define HEDDLE_RUN_SYNC 4u
#define HEDDLE_RUN_PASS 8u   // ignore breakpoints and RUN_SYNC at the first instruction

// The costs of instructions in the timing model, in cycles.
struct heddle_costs {
  uint32_t instruction, memory, divide, atomic, fence, sqrt, transcendental;
  uint32_t check;  // added to a call and to a return
};

// The states of a run. Only the run loop (run_loop in cpu.c), trap_step and the engine's hooks change
// them.
//
//   heddle_cpu_run, heddle_cpu_resume
//     |
//     |   an interrupted instruction, the rest of a block
//     +-------------------------------> STEP <-------------------------+
//     |                                 |  |                           |
//     v          end of the block       |  |  a reason to stop         |
//   BLOCKS <----------------------------+  +------------------> IDLE   |
//     |                                                          ^     |
//     +-- a reason to stop --------------------------------------+     |
//     +-- the end of the run at an instruction with a hook       |     |
//     |                      --> AT_POINT -----------------------+     |
//     +-- a block whose PAUSE ends the run                       |     |
//     |                      --> PAUSING ------------------------+     |
//     +-- a block to step through --> AT_BLOCK ------------------------+
//
// The reasons to stop are enum heddle_stop. A fault in PAUSING is one too; the continuation finds the
// PAUSE again. A run that stops within a block for a reason that the caller can remove (a fault, a
// breakpoint) keeps the end of that block in rest_end, and heddle_cpu_resume continues there. Each start
// of the engine on blocks sets BLOCKS.
enum heddle_run_state {
  HEDDLE_STATE_IDLE,      // no thread runs: registers and memory are the kernel's to change
  HEDDLE_STATE_BLOCKS,    // the engine executes translated blocks, which the block hook counts
  HEDDLE_STATE_PAUSING,   // as BLOCKS; the run ends with this block's PAUSE
  HEDDLE_STATE_AT_BLOCK,  // the block hook has stopped before a block, to be stepped through
  HEDDLE_STATE_AT_POINT,  // the hook of the instruction at stops.armed has stopped before it
  HEDDLE_STATE_STEP,      // the engine executes one instruction, which the block hook does not count
};

// The stops that the first instruction of a run, or of its continuation, does not cause.
enum heddle_pass {
  HEDDLE_PASS_NOTHING,
  HEDDLE_PASS_BREAKPOINT,  // a breakpoint: the run was stopped by it
  HEDDLE_PASS_ALL,         // a breakpoint, and what RUN_SYNC stops before
};

// The run in progress, or the last one.
struct heddle_run {
  // The data of the block hooks, in one cache line. The budget that is granted to them is
  // cycles << 32 | instructions, 31 bits each.
  struct heddle_block *table;             // blocks.table
  uint64_t tag;                           // of the space in the table, shifted; NO_TAG forces the slow path
  uint64_t granted;                       // and not used yet
  const struct heddle_block *last_block;  // that runs or ran last, or heddle_no_block
  // Outcomes of conditional branches that are not in the branch log yet, after a leading 1,
  // and the value at which a word of the log is full.
  uint64_t outcomes, outcomes_full;
  // The rest of the budget, without the part that is granted; negative after an overshoot.
  int64_t instructions_left, cycles_left;

  enum heddle_run_state state;

  // The budgets, and the instructions and cycles that a finished run has retired.
  int64_t instruction_limit, cycle_limit;
  int64_t exact_limit;  // of instructions, whatever the flags
  uint64_t instructions, cycles;
  uint32_t flags;    // HEDDLE_RUN_...
  uint32_t watched;  // flags of blocks that keep them out of the table

  // The end: its reason, the PC, and the details of a fault or exception.
  enum heddle_stop stop;
  uint64_t end_pc;
  uint32_t vector;
  enum heddle_access fault_access;
  enum heddle_walk fault_kind;
  uint64_t fault_page;
  bool fault_ahead;  // of code that follows the PC: the engine was about to translate it
  int error;         // a uc_err

  enum heddle_pass pass;
  uint64_t pass_at;  // instructions of the run when pass was set

  // A block to step through: its start (0 once the engine has started again) and end.
  uint64_t step_from, step_end;
  // The end of a block that a fault or breakpoint interrupted (0: none), and whether the budget is
  // examined before each instruction of its rest.
  uint64_t rest_end;
  bool rest_checked;
  // The block before which the block hook has stopped the engine, 0: none.
  uint64_t stopped_before;
  // The instruction at which straight-line code continues that the engine has cut, 0: none. No budget
  // is examined there: where the engine cuts depends on its hooks.
  uint64_t fallthrough_pc;

  bool checks_alignment;  // EFLAGS.AC is set: instructions are executed one at a time
};

// The instructions before which runs stop, besides those of RUN_SYNC and the like.
struct heddle_stops {
  uint64_t *breakpoints;  // sorted
  size_t nbreakpoints;
  uint64_t halt_at;  // instructions of the run after which it stops as at a breakpoint, 0: none

  // A run stops as for a full log each time it has executed this number of instructions more, 0: never;
  // next at poll_at.
  uint64_t poll_interval, poll_at;

  // Instructions with a hook of their own, sorted, at which runs may end exactly without being stepped,
  // and the one at which the run ends in the current block; armed.at is 0 otherwise.
  uint64_t *points;
  size_t npoints;
  uc_hook *point_hooks;
  struct heddle_cut armed;

  struct heddle_pauses pauses;
};

// The logs of runs, each of which may be off.
struct heddle_logs {
  struct heddle_log flow;  // branches and code
  struct heddle_atomic_log atomics;
  struct heddle_insn_log instructions;
  struct heddle_mem_log memory;
};

// The Unicorn instance, and the state of its caches.
struct heddle_engine {
  uc_engine *uc;
  bool has_run;  // a guest's instruction
  uc_hook hooks[8], *block_hook;
  unsigned nhooks;
  uc_context *initial;       // of a new thread
  uc_context *scratch;       // for access to state that has no register
  size_t sse_flags_offset;   // of the SSE exception flags in a context, 0: not found
  size_t x87_flags_offset;   // of the x87 exception flags

  // The space and version that the engine's address translations are of.
  struct heddle_space *cached_space;
  uint64_t cached_version;
  uint64_t fills, fill_limit;  // translations requested since the last flush, and when to flush
  bool window_open;            // the addresses from WINDOW on (run.h) are mapped to physical memory

  // The start of the engine's buffer of translated code, and whether it must be emptied.
  uintptr_t code_start;
  bool code_full;
};

// An emulated processor: the engine and what it runs on. A processor has all cores of the machine, one
// after another: core and clock are those of the loaded thread.
struct heddle_cpu {
  struct heddle_run run;
  struct heddle_stops stops;
  struct heddle_logs logs;
  struct heddle_engine engine;

  ZydisDecoder decoder;
  struct heddle_blocks blocks;
  struct heddle_costs costs;

  // Memory: at most one of buffers and private_pages is there.
  struct heddle_ram *ram;
  struct heddle_space *space;                 // of the loaded thread
  struct heddle_buffers *buffers;             // NULL: stores are visible at once
  struct heddle_store_hook *store_hook;       // ... and what reports stores to them
  struct heddle_private_pages *private_pages; // NULL: all cores see the same pages

  struct heddle_insides inside;               // where the run may end inside an instruction

  // Values that the guest can read.
  uint32_t core, cores;
  uint64_t clock;           // cycles of the core's clock at the start of the run
  uint32_t tsc_multiplier;  // TSC ticks in 1024 cycles
  bool tsc_instructions;    // a run adds its instructions to the clock, not its cycles
};

// The part of a run's budget that is used up: instructions and cycles that it has retired.
static inline uint64_t heddle_cpu_instructions_now(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->run.instruction_limit - cpu->run.instructions_left) - (uint32_t)cpu->run.granted;
}

static inline uint64_t heddle_cpu_cycles_now(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->run.cycle_limit - cpu->run.cycles_left) - (cpu->run.granted >> 32);
}

int heddle_cpu_reserve(uc_engine *uc);
int heddle_cpu_init(struct heddle_cpu *cpu, uc_engine *uc, struct heddle_ram *ram, uint32_t cores);
void heddle_cpu_close(struct heddle_cpu *cpu);
enum heddle_stop heddle_cpu_run(struct heddle_cpu *cpu, uint64_t instructions, uint64_t most, uint64_t cycles,
                                uint32_t flags);
enum heddle_stop heddle_cpu_run_other(uintptr_t cpu, uintptr_t from, uintptr_t to, uint64_t instructions, uint64_t most,
                                      uint64_t cycles, uint32_t flags);
enum heddle_stop heddle_cpu_resume(struct heddle_cpu *cpu);
void heddle_cpu_step_ahead(struct heddle_cpu *cpu);
void heddle_cpu_get_regs(struct heddle_cpu *cpu, struct heddle_regs *r);
uint64_t heddle_cpu_pc(struct heddle_cpu *cpu);
void heddle_cpu_switch(struct heddle_cpu *cpu, uc_context *from, uc_context *to);
void heddle_cpu_set_regs(struct heddle_cpu *cpu, const struct heddle_regs *r);
void heddle_cpu_get_fp(struct heddle_cpu *cpu, void *fxsave);
void heddle_cpu_set_fp(struct heddle_cpu *cpu, const void *fxsave);
int heddle_cpu_breakpoints(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n);
int heddle_cpu_points(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n);
uint64_t heddle_cpu_fault_address(struct heddle_cpu *cpu);
bool heddle_cpu_operand(struct heddle_cpu *cpu, uint64_t pc, uint64_t *at);
bool heddle_cpu_repetition_over(struct heddle_cpu *cpu);
bool heddle_cpu_decode_at(struct heddle_cpu *cpu, uint64_t pc, struct heddle_regs *regs, struct heddle_insn *out);
int heddle_cpu_accesses(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in, struct heddle_insn_access *out,
                        int most);
int heddle_cpu_open_private(struct heddle_cpu *cpu);
size_t heddle_cpu_operands(struct heddle_cpu *cpu, struct heddle_operand *out);
void heddle_cpu_cpuid(const struct heddle_cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
int heddle_cpu_log(struct heddle_cpu *cpu, bool timed);
int heddle_cpu_count_branches(struct heddle_cpu *cpu);

#endif
