// The engine's hot side: hooks, counting, translation, stepping. See cpu.go.
#ifndef HEDDLE_CPU_H
#define HEDDLE_CPU_H

#include <Zydis/Zydis.h>
#include <unicorn/unicorn.h>

#include "atomics.h"
#include "block.h"
#include "inside.h"
#include "insnlog.h"
#include "log.h"
#include "memlog.h"
#include "memory.h"
#include "pause.h"

// Why a run of the CPU stopped.
enum heddle_stop {
  HEDDLE_STOP_NONE,
  HEDDLE_STOP_BUDGET,      // the budget of instructions or cycles is used up
  HEDDLE_STOP_SYSCALL,     // after a SYSCALL instruction
  HEDDLE_STOP_FAULT,       // page fault, nothing of the instruction done
  HEDDLE_STOP_NO_MEMORY,   // a page had to be copied and there is none left
  HEDDLE_STOP_EXCEPTION,   // vector and PC say which
  HEDDLE_STOP_INTERRUPT,   // INT n or INT3: vector, PC after the instruction
  HEDDLE_STOP_BREAKPOINT,  // at a breakpoint, before its instruction
  HEDDLE_STOP_PAUSE,       // after a PAUSE instruction
  HEDDLE_STOP_SYNC,        // before an atomic instruction or fence
  HEDDLE_STOP_ENGINE,      // the engine failed: error
  HEDDLE_STOP_LOG,         // the branch log is full, before a block
};

// What to stop for, besides what always stops.
#define HEDDLE_RUN_EXACT 1u  // stop at the first instruction at or after a budget
#define HEDDLE_RUN_PAUSE 2u
#define HEDDLE_RUN_SYNC 4u
#define HEDDLE_RUN_PASS 8u   // do not stop at a breakpoint at the first instruction

// The timing model's part that depends on instructions alone, in cycles.
struct heddle_costs {
  uint32_t instruction, memory, divide, atomic, fence, sqrt, transcendental;
  uint32_t check;  // more for a call and for a return
};

struct heddle_regs {
  uint64_t gpr[16];  // rax rcx rdx rbx rsp rbp rsi rdi r8-r15, as encoded
  uint64_t rip, rflags, fs_base, gs_base;
};

// Memory that an instruction accesses.
struct heddle_operand {
  uint64_t at;
  uint32_t size;
  uint32_t writes;
};

// The most operands in memory that an instruction has.
#define HEDDLE_OPERANDS 4

struct heddle_cpu {
  // What the block hooks touch, in one cache line. A part of the run's budget
  // is handed out to them: cycles << 32 | instructions, 31 bits each.
  struct heddle_block *table;  // blocks.table
  uint64_t tag;                // of the space in the table, shifted; NO_TAG forces the slow path
  uint64_t left;
  const struct heddle_block *last;  // that is running or ran last, or no_block
  // For the branch log: the outcomes that are in no word yet, below a one, up
  // to a full word.
  uint64_t outcomes, outcomes_full;

  // What is left of the budget apart from what is handed out; negative after an
  // overshoot.
  int64_t instructions_left, cycles_left;

  uc_engine *uc;
  struct heddle_ram *ram;
  struct heddle_space *space;
  struct heddle_costs costs;
  ZydisDecoder decoder;

  // Of the current or last run.
  uint64_t instructions, cycles;  // retired, once the run is over
  int64_t instruction_limit, cycle_limit;
  int64_t most;  // instructions, exactly
  uint32_t run_flags, watched;  // watched: the flags of blocks that matter to the run
  enum heddle_stop stop;
  uint32_t vector;
  enum heddle_access access;
  enum heddle_walk walk;
  uint64_t fault_page;
  bool ahead;  // the fault is of code that follows the PC: the engine was about to translate it
  int error;
  bool stepping, pause_pending, ran;
  bool passed, pass_sync;  // a breakpoint, or a place of RUN_SYNC, at the PC is left behind
  uint64_t pass_at;  // instructions of the run when passed was set
  uint64_t halt_at;  // instructions of the run after which it stops like at a breakpoint, 0: none
  // A run stops as for a full log each time that it has run so many instructions more, 0:
  // never; the next time is at look_at.
  uint64_t look_every, look_at;
  // A block that a fault interrupted: where it ends, and whether it was being
  // stepped through with a look at the budget before each instruction.
  uint64_t resume_end;
  bool resume_checked;

  // Whether and where the run may end inside an instruction, and the instruction that the
  // loaded thread is inside, at its begin or at its end.
  uint32_t inside_choice;
  struct heddle_inside within;

  // Where a straight run of instructions goes on that the engine has cut, 0:
  // nowhere. Budgets are not looked at there.
  uint64_t straight;

  uint64_t stopped_at;  // the block that the block hook stopped before, 0: none
  uint64_t pc;          // where the last run ended

  // A block to step through: where it starts (0: none) and ends.
  uint64_t stepped, stepped_end;

  struct heddle_blocks blocks;
  struct heddle_log log;
  struct heddle_atomic_log atomics;
  struct heddle_insn_log insns;
  struct heddle_buffers *buffers;  // NULL: stores are seen at once
  struct heddle_views *views;      // NULL: cores see the same pages
  struct heddle_mem_log memory;
  struct heddle_pauses pauses;

  // What the engine's translation caches correspond to.
  struct heddle_space *seen_space;
  uint64_t seen_version;
  uint64_t fills, fill_budget;  // translations asked for since the last flush, and when to flush
  bool window;  // the kernel's window on physical memory is open

  // What the guest may ask.
  uint64_t clock;  // cycles of the core's clock at the start of the run
  uint32_t core, cores;
  bool transcendental;  // a block with an x87 transcendental instruction was met
  uint32_t tsc_multiplier;  // TSC ticks for 1024 cycles

  uint64_t *breakpoints;  // sorted
  size_t nbreakpoints;

  // Instructions that have a hook, sorted, and the one before which the run ends
  // exactly; armed.at is 0 if there is none.
  uint64_t *points;
  size_t npoints;
  struct heddle_cut armed;
  bool at_point;  // the run was stopped there

  // Of the engine's buffer of translations: its begin, and that it must be
  // emptied before it overflows.
  uintptr_t code_start;
  bool code_full;

  uc_hook hooks[8], *block_hook, *point_hooks;
  unsigned nhooks;
  uc_context *clean;
  uc_context *spare;
  size_t sse_flags_at;  // of the SSE exception flags in a context, 0: not found
};

// What of a run's budget is used up.
static inline uint64_t heddle_cpu_instructions_now(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->instruction_limit - cpu->instructions_left) - (uint32_t)cpu->left;
}

static inline uint64_t heddle_cpu_cycles_now(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->cycle_limit - cpu->cycles_left) - (cpu->left >> 32);
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
bool heddle_cpu_rep_over(struct heddle_cpu *cpu);
size_t heddle_cpu_operands(struct heddle_cpu *cpu, struct heddle_operand *out);
void heddle_cpu_cpuid(const struct heddle_cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
int heddle_cpu_log(struct heddle_cpu *cpu, bool timed);
int heddle_cpu_count_branches(struct heddle_cpu *cpu);

#endif
