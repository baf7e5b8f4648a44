// The functions that the engine calls while a guest runs: at blocks, to translate addresses, at
// exceptions. The block hooks are the hottest code of heddle.
#include "run.h"

#include "storehook.h"

#include <stdlib.h>
#include <string.h>

#define CONDITIONAL ((uint64_t)HEDDLE_KIND_COND << HEDDLE_KIND_SHIFT)

// The size of the engine's buffer of translated code. The engine's default of 1 GiB would be used
// host memory once it has been filled. A block takes half a kilobyte, the largest ones 60 KiB.
#define CODE_BUFFER (96u << 20)
#define CODE_MARGIN (4u << 20)

// Reports whether the block starts at the breakpoint that the run continues from, and has no other
// breakpoint: one after a call or a return is common.
static bool passes_breakpoint(struct heddle_cpu *cpu, const struct heddle_block *b) {
  return cpu->run.pass != HEDDLE_PASS_NOTHING && cpu->run.pass_at == heddle_cpu_instructions_now(cpu) &&
         !heddle_has_breakpoint(cpu, heddle_block_pc(b) + 1, heddle_block_end(b));
}

// If the run ends before an instruction of the block that has a hook, makes that hook stop the run.
// Returns whether it did.
static bool arm_point(struct heddle_cpu *cpu, const struct heddle_block *b) {
  if (!cpu->stops.npoints || exceeds_cycles(cpu, b)) return false;
  const struct heddle_cut *cut = heddle_cut_block(cpu, b, (uint64_t)until_exact_end(cpu));
  if (!heddle_any_within(cpu->stops.points, cpu->stops.npoints, cut->at, cut->at + 1)) return false;
  cpu->stops.armed = *cut;
  return true;
}

static void on_point(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  (void)size;
  struct heddle_cpu *cpu = user;
  if (__builtin_expect(pc != cpu->stops.armed.at || is_stepping(cpu), 1)) return;
  cpu->run.state = HEDDLE_STATE_AT_POINT;
  stop_engine(cpu, HEDDLE_STOP_BUDGET);
}

// Decides about a block that is not in the table. Returns whether the run was stopped before it.
static bool examine_block(struct heddle_cpu *cpu, const struct heddle_block *b) {
  uint64_t pc = heddle_block_pc(b);
  if (cpu->run.state == HEDDLE_STATE_PAUSING) {
    stop_engine(cpu, HEDDLE_STOP_PAUSE);
    return true;
  }
  if (cpu->engine.code_full || (cpu->logs.memory.hooks_lost && pc != cpu->logs.memory.pc)) {
    stop_engine(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  if ((is_exhausted(cpu) && !cpu->run.fallthrough_pc) || is_at_exact_end(cpu)) {
    stop_engine(cpu, HEDDLE_STOP_BUDGET);
    return true;
  }
  if (heddle_logs_full(cpu) || heddle_atomics_full(&cpu->logs.atomics) || is_poll_due(cpu)) {
    stop_engine(cpu, HEDDLE_STOP_LOG);
    return true;
  }
  if (heddle_pause_request(cpu, b)) {
    stop_engine(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  uint64_t look = HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL | HEDDLE_BLOCK_PAUSE_INSIDE;
  if ((cpu->run.flags & HEDDLE_RUN_SYNC) || (cpu->logs.atomics.on && !cpu->logs.atomics.muted))
    look |= HEDDLE_BLOCK_SYNC;
  if (cpu->buffers || cpu->private_pages) look |= HEDDLE_BLOCK_SYNC | HEDDLE_BLOCK_ORDER;
  if (passes_breakpoint(cpu, b)) look &= ~(uint64_t)HEDDLE_BLOCK_BREAK;
  bool inside = heddle_block_flags(b) & look;
  inside |= cpu->run.checks_alignment || heddle_block_count(b) > until_halt(cpu);
  bool last = heddle_block_count(b) > cpu->run.instructions_left || heddle_block_cost(b) > cpu->run.cycles_left;
  if (!inside && last) inside = heddle_cpu_ends_inside(cpu, pc, heddle_block_end(b));
  if (!inside && (exceeds_cycles(cpu, b) || heddle_block_count(b) > until_exact_end(cpu))) inside = !arm_point(cpu, b);
  if (inside) {
    // The run loop steps through the block.
    cpu->run.state = HEDDLE_STATE_AT_BLOCK;
    cpu->run.step_from = pc;
    cpu->run.step_end = heddle_block_end(b);
    stop_engine(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  if (heddle_block_flags(b) & HEDDLE_BLOCK_PAUSE) {
    cpu->run.state = HEDDLE_STATE_PAUSING;
    cpu->run.tag = HEDDLE_NO_TAG;
  }
  return false;
}

// Notes that the run has reached pc after the previous block. Where the engine cuts straight-line
// code depends on its hooks; where runs end must not.
void heddle_enter_block(struct heddle_cpu *cpu, uint64_t pc) {
  const struct heddle_block *last = cpu->run.last_block;
  if (last != &heddle_no_block)
    cpu->run.fallthrough_pc = heddle_block_kind(last) == HEDDLE_KIND_NONE && heddle_block_end(last) == pc ? pc : 0;
  else if (cpu->run.fallthrough_pc != pc) cpu->run.fallthrough_pc = 0;
  cpu->run.last_block = &heddle_no_block;
}

// Notes how full the engine's buffer of translated code is. The hook's return address lies in the
// block that calls it, blocks are translated to ascending addresses, and each new block takes this
// path.
static void watch_code_buffer(struct heddle_cpu *cpu, const void *caller) {
  uintptr_t at = (uintptr_t)caller;
  if (!cpu->engine.code_start || at < cpu->engine.code_start) cpu->engine.code_start = at;
  if (at - cpu->engine.code_start > CODE_BUFFER - CODE_MARGIN) cpu->engine.code_full = true;
}

// Makes the run stop after PAUSE from this block on. Returns the block's description.
static struct heddle_block *watch_for_pause(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  cpu->run.flags |= HEDDLE_RUN_PAUSE;
  heddle_set_watched(cpu, cpu->run.flags);
  cpu->run.tag = heddle_blocks_tag(&cpu->blocks, cpu->space->code);
  return heddle_describe_block(cpu, pc, size);
}

static __attribute__((noinline)) void on_block_slow(struct heddle_cpu *cpu, uint64_t pc, uint32_t size,
                                                    const void *caller) {
  watch_code_buffer(cpu, caller);
  heddle_pause_restore(cpu);
  if (is_stepping(cpu)) return;
  reclaim_budget(cpu);
  heddle_enter_block(cpu, pc);
  cpu->run.tag = heddle_blocks_tag(&cpu->blocks, cpu->space->code);
  struct heddle_block *b = heddle_block_slot(cpu->run.table, pc);
  if (b->key != (pc | cpu->run.tag)) {
    b = heddle_describe_block(cpu, pc, size);
    if (cpu->logs.flow.on) heddle_log_code(cpu, pc, size);
  }
  if (heddle_pause_is_near(cpu, b)) b = watch_for_pause(cpu, pc, size);
  if (examine_block(cpu, b)) {
    cpu->run.stopped_before = pc;
    return;
  }
  cpu->run.instructions_left -= heddle_block_count(b);
  cpu->run.cycles_left -= heddle_block_cost(b);
  cpu->run.last_block = b;
  grant_budget(cpu);
}

// The hottest function of heddle: it counts, and leaves everything else to the slow path.
static inline void pass_block(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, const void *caller) {
  const struct heddle_block *b = heddle_block_slot(cpu->run.table, pc);
  uint64_t left = cpu->run.granted - b->take;
  if (__builtin_expect(b->key != (pc | cpu->run.tag) || (int64_t)left < 0, 0)) {
    on_block_slow(cpu, pc, size, caller);
    return;
  }
  cpu->run.granted = left;
  cpu->run.last_block = b;
}

static void on_block(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  pass_block(user, pc, size, __builtin_return_address(0));
}

// pass_block for runs whose loads and stores are logged.
static inline void pass_memory_logged(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, const void *caller) {
  bool stop = heddle_logs_full(cpu) || cpu->logs.memory.hooks_lost;
  if (cpu->logs.memory.pc == pc) heddle_mem_retry(&cpu->logs.memory);
  if (stop) on_block_slow(cpu, pc, size, caller);
  else pass_block(cpu, pc, size, caller);
}

// An instruction of the previous block is retried as a block of its own. The previous block did not
// reach its end, and the instruction was counted as the whole block that starts there.
static void count_retried(struct heddle_cpu *cpu, uint64_t before) {
  uint64_t counted = heddle_cpu_instructions_now(cpu) - before;
  if (!counted) return;
  cpu->logs.flow.repeated += counted - 1;
  cpu->blocks.slow = *cpu->run.last_block;
  cpu->blocks.slow.end &= HEDDLE_ADDRESS;
  cpu->run.last_block = &cpu->blocks.slow;
}

// The rare cases of the block hook of runs whose branches are logged or counted: the branch at the
// end of the previous block is known now.
static __attribute__((noinline)) void on_block_logged_slow(struct heddle_cpu *cpu, uint64_t pc, uint32_t size,
                                                     const void *caller) {
  uint64_t before = heddle_cpu_instructions_now(cpu);
  const struct heddle_block *last = cpu->run.last_block;
  bool again = last != &heddle_no_block && heddle_log_retry(cpu, pc, size);
  if (!again) heddle_log_branch(cpu, heddle_block_kind(last), heddle_block_end(last), pc);
  if (cpu->logs.memory.core.on) pass_memory_logged(cpu, pc, size, caller);
  else pass_block(cpu, pc, size, caller);
  if (again) count_retried(cpu, before);
}

// The rest of note_block when a word of outcomes is full, which is logged with the time before the
// block.
static __attribute__((noinline)) void pass_full_word(struct heddle_cpu *cpu, const struct heddle_block *b) {
  heddle_log_flush(cpu);
  cpu->run.granted -= b->take;
  cpu->run.last_block = b;
}

// The frequent cases. Whether a block ends with a conditional branch is unpredictable, so nothing
// here branches on it. A retried block takes the rare path: either it was translated a moment ago,
// or a store to code has removed the tag.
static inline void note_block(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, const void *caller) {
  const struct heddle_block *b = heddle_block_slot(cpu->run.table, pc);
  uint64_t left = cpu->run.granted - b->take, end = cpu->run.last_block->end;
  bool alone = (uint32_t)b->end != (uint32_t)pc + size;
  if (__builtin_expect(b->key != (pc | cpu->run.tag) || alone || (int64_t)(left | end) < 0, 0)) {
    on_block_logged_slow(cpu, pc, size, caller);
    return;
  }
  uint64_t conditional = end >> HEDDLE_KIND_SHIFT;
  uint64_t outcomes = cpu->run.outcomes << conditional | (conditional & ((pc | CONDITIONAL) != end));
  cpu->run.outcomes = outcomes;
  if (__builtin_expect(outcomes >= cpu->run.outcomes_full, 0)) {
    pass_full_word(cpu, b);
    return;
  }
  cpu->run.granted = left;
  cpu->run.last_block = b;
}

static void on_block_logged(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  note_block(user, pc, size, __builtin_return_address(0));
}

static void on_block_memory_logged(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  const void *caller = __builtin_return_address(0);
  if (heddle_logs_full(cpu) || cpu->logs.memory.hooks_lost || cpu->logs.memory.pc == pc)
    on_block_logged_slow(cpu, pc, size, caller);
  else note_block(cpu, pc, size, caller);
}

static void on_translate(uc_engine *uc, uc_tb *cur, uc_tb *prev, void *user) {
  (void)uc;
  (void)prev;
  struct heddle_cpu *cpu = user;
  heddle_pause_restore(cpu);
  heddle_block_translated(cpu, cur->pc, cur->size);
  if (cpu->logs.memory.core.on) heddle_mem_translated(&cpu->logs.memory, cur->pc, cur->size);
}

static bool on_fill(uc_engine *uc, uint64_t va, uc_mem_type type, uc_tlb_entry *out, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  if (cpu->engine.window_open && va >= WINDOW) {
    out->paddr = va - WINDOW;
    out->perms = UC_PROT_ALL;
    return true;
  }
  enum heddle_access access = type == UC_MEM_WRITE   ? HEDDLE_WRITE
                              : type == UC_MEM_FETCH ? HEDDLE_FETCH
                                                     : HEDDLE_READ;
  cpu->engine.fills++;
  struct heddle_space *s = cpu->space;
  bool synced = s && cpu->engine.cached_version == s->version;
  uint64_t pte;
  cpu->run.fault_kind = s ? heddle_space_walk(s, va, access, false, &pte) : HEDDLE_WALK_ABSENT;
  if (cpu->private_pages && !cpu->run.fault_kind) {
    cpu->run.fault_kind = heddle_private_fill(cpu->private_pages, va, access, &pte);
    if (cpu->private_pages->once) cpu->engine.cached_space = NULL;
  }
  if (cpu->run.fault_kind) {
    cpu->run.fault_access = access;
    cpu->run.fault_page = va;
    return false;
  }
  // The entry returned here replaces the engine's own.
  if (synced) cpu->engine.cached_version = s->version;
  uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
  if (cpu->ram->flags[page] & HEDDLE_PAGE_CODE) {
    // The engine gets no right to write, so that it notices a change of code. The store is then
    // executed alone: the engine counts a block that changes itself again from the place of the
    // change.
    if (access != HEDDLE_WRITE) {
      pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
    } else if (is_stepping(cpu)) {
      heddle_ram_written(cpu->ram, page);
    } else {
      cpu->run.fault_kind = HEDDLE_WALK_CODE;
      cpu->run.fault_access = access;
      cpu->run.fault_page = va;
      return false;
    }
  }
  out->paddr = page << HEDDLE_PAGE_SHIFT;
  uint32_t perms = UC_PROT_NONE;
  if (pte & HEDDLE_PTE_READ) perms |= UC_PROT_READ;
  if (pte & HEDDLE_PTE_WRITE) perms |= UC_PROT_WRITE;
  // Without a fetch the page has no translated code. If the engine had the right to execute
  // already, it would not report the first fetch.
  if ((pte & HEDDLE_PTE_EXEC) && (cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) perms |= UC_PROT_EXEC;
  if (cpu->logs.memory.core.on) heddle_mem_filled(&cpu->logs.memory, va, page, type, &perms);
  if (cpu->store_hook) heddle_store_hook_filled(cpu, va, page, type, &perms);
  out->perms = (uc_prot)perms;
  return true;
}

static void on_interrupt(uc_engine *uc, uint32_t vector, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  cpu->run.vector = vector;
  stop_engine(cpu, HEDDLE_STOP_EXCEPTION);
}

static void on_syscall(uc_engine *uc, void *user) {
  (void)uc;
  stop_engine(user, HEDDLE_STOP_SYSCALL);
}

static int on_cpuid(uc_engine *uc, void *user) {
  uint64_t rax = 0, rcx = 0;
  uc_reg_read(uc, UC_X86_REG_RAX, &rax);
  uc_reg_read(uc, UC_X86_REG_RCX, &rcx);
  uint32_t out[4];
  heddle_cpu_cpuid(user, (uint32_t)rax, (uint32_t)rcx, out);
  static const int regs[] = {UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX};
  for (int i = 0; i < 4; i++) {
    uint64_t value = out[i];
    uc_reg_write(uc, regs[i], &value);
  }
  return 1;
}

// Settings that the engine takes before it is initialized.
int heddle_cpu_reserve(uc_engine *uc) { return uc_ctl_set_tcg_buffer_size(uc, CODE_BUFFER); }

static int add_hook(struct heddle_cpu *cpu, int type, void *callback, int insn) {
  return uc_hook_add(cpu->engine.uc, &cpu->engine.hooks[cpu->engine.nhooks++], type, callback, cpu, (uint64_t)1,
                     (uint64_t)0, insn);
}

int heddle_hooks_add(struct heddle_cpu *cpu) {
  int err;
  if ((err = add_hook(cpu, UC_HOOK_TLB_FILL, (void *)on_fill, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_BLOCK, (void *)on_block, 0))) return err;
  cpu->engine.block_hook = &cpu->engine.hooks[cpu->engine.nhooks - 1];
  if ((err = add_hook(cpu, UC_HOOK_EDGE_GENERATED, (void *)on_translate, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INTR, (void *)on_interrupt, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INSN, (void *)on_syscall, UC_X86_INS_SYSCALL))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INSN, (void *)on_cpuid, UC_X86_INS_CPUID))) return err;
  return UC_ERR_OK;
}

// Installs the block hook that logs or counts branches.
int heddle_cpu_count_branches(struct heddle_cpu *cpu) {
  cpu->logs.flow.counts = true;
  cpu->engine.code_full = cpu->engine.code_full || cpu->engine.has_run;  // code without the hook goes
  int err = uc_hook_del(cpu->engine.uc, *cpu->engine.block_hook);
  if (err) return err;
  void *hook = cpu->logs.memory.core.on ? (void *)on_block_memory_logged : (void *)on_block_logged;
  return uc_hook_add(cpu->engine.uc, cpu->engine.block_hook, UC_HOOK_BLOCK, hook, cpu, (uint64_t)1, (uint64_t)0);
}

// Gives instructions a hook, so that a run whose budget ends before one need not be stepped there.
// Only blocks that are translated later have the hook.
int heddle_cpu_points(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  if (cpu->engine.has_run || cpu->stops.npoints) return UC_ERR_HOOK;
  cpu->stops.points = malloc(n * sizeof *cpu->stops.points);
  cpu->stops.point_hooks = malloc(n * sizeof *cpu->stops.point_hooks);
  if (!cpu->stops.points || !cpu->stops.point_hooks) return UC_ERR_NOMEM;
  memcpy(cpu->stops.points, sorted, n * sizeof *cpu->stops.points);
  for (size_t i = 0; i < n; i++) {
    int err = uc_hook_add(cpu->engine.uc, &cpu->stops.point_hooks[i], UC_HOOK_CODE, (void *)on_point, cpu, sorted[i],
                          sorted[i]);
    if (err) return err;
  }
  cpu->stops.npoints = n;
  return UC_ERR_OK;
}
