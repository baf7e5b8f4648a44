#include "run.h"

#include "buffers.h"
#include "sse.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

// Throws away translations of pages that were changed behind the engine's
// back. The engine takes virtual addresses only, hence the window.
static void drop_stale(struct heddle_cpu *cpu) {
  struct heddle_ram *ram = cpu->ram;
  if (!ram->nstale) return;
  cpu->window = true;
  while (ram->nstale) {
    uint64_t page = ram->stale[--ram->nstale];
    ram->flags[page] &= (uint8_t)~(HEDDLE_PAGE_STALE | HEDDLE_PAGE_CODE);
    uint64_t va = WINDOW + (page << HEDDLE_PAGE_SHIFT);
    uc_ctl_remove_cache(cpu->uc, va, va + HEDDLE_PAGE_SIZE);
  }
  cpu->window = false;
  cpu->seen_space = NULL;
}

// Empties the engine's buffer of translations before it is full: the engine's own
// way of doing so, in the middle of a run, damages its memory.
static void empty_buffer(struct heddle_cpu *cpu) {
  if (!cpu->code_full) return;
  uc_ctl_flush_tb(cpu->uc);
  cpu->code_full = false;
}

static void sync_caches(struct heddle_cpu *cpu) {
  drop_stale(cpu);
  empty_buffer(cpu);
  bool current = cpu->seen_space == cpu->space && cpu->seen_version == cpu->space->version && !cpu->memory.flush;
  if (current && cpu->fills < cpu->fill_budget) return;
  // The engine's cache of translations starts with 256 entries and grows at
  // flushes only: one that is too small is made to grow, ever less often.
  if (current) cpu->fill_budget *= 2;
  cpu->fills = 0;
  cpu->memory.epoch++;
  cpu->memory.flush = false;
  uc_ctl_flush_tlb(cpu->uc);
  if (cpu->buffers) heddle_buffers_flushed(cpu->buffers);
  cpu->seen_space = cpu->space;
  cpu->seen_version = cpu->space->version;
}

uc_err heddle_start(struct heddle_cpu *cpu) {
  heddle_mem_heard(&cpu->memory);
  uint64_t pc = get_rip(cpu);
  heddle_pause_find(cpu, pc);
  sync_caches(cpu);
  cpu->tag = cpu->stepping ? HEDDLE_NO_TAG : heddle_blocks_tag(&cpu->blocks, cpu->space->code);
  cpu->stop = HEDDLE_STOP_NONE;
  cpu->last = &heddle_no_block;
  cpu->stepped = cpu->stopped_at = cpu->armed.at = 0;
  cpu->at_point = false;
  if (!cpu->stepping) hand_out(cpu);
  heddle_pause_hide(cpu, pc);
  uc_err err = uc_emu_start(cpu->uc, pc, 0, 0, 0);
  heddle_pause_show(cpu);
  take_back(cpu);
  // Where there is a code hook, the engine leaves the PC at the instruction
  // before if it stops in the hook of a block.
  if ((cpu->memory.on || cpu->insns.on || cpu->npoints) && cpu->stopped_at) set_reg(cpu, UC_X86_REG_RIP, cpu->stopped_at);
  return err;
}

// The instruction at the PC did not complete: takes back what was counted for
// it and for the rest of its block.
static void uncount(struct heddle_cpu *cpu) {
  if (cpu->memory.pc == get_rip(cpu)) heddle_mem_undo(&cpu->memory);
  if (cpu->stepping || cpu->last == &heddle_no_block) return;
  uint64_t pc = get_rip(cpu), start = heddle_block_pc(cpu->last), end = heddle_block_end(cpu->last);
  if (pc < start || pc >= end) return;
  cpu->last = &heddle_no_block;
  struct heddle_known rest = heddle_measure(cpu, pc, end);
  cpu->instructions_left += rest.count;
  cpu->cycles_left += rest.cost;
  if (pc > start) {
    cpu->resume_end = end;
    cpu->resume_checked = cpu->armed.at;
  }
}

// Supplies the page of an access that must not happen while the engine runs. The
// store that changes code, and the rest of its block, which may be changed, are executed
// one by one.
static void supply_stopped(struct heddle_cpu *cpu, uint64_t block_end) {
  uint64_t pte;
  cpu->walk = heddle_space_walk(cpu->space, cpu->fault_page, cpu->access, true, &pte);
  if (cpu->access != HEDDLE_FETCH) heddle_insns_again(cpu, get_rip(cpu));
  if (cpu->walk || cpu->access != HEDDLE_WRITE) return;
  heddle_ram_written(cpu->ram, pte >> HEDDLE_PAGE_SHIFT);
  if (cpu->stepping || cpu->resume_end) return;
  cpu->resume_end = block_end;
  cpu->resume_checked = cpu->armed.at;
}

// What a failed start means. NONE: nothing, go on.
enum heddle_stop heddle_failed(struct heddle_cpu *cpu, uc_err err) {
  uint64_t block_end = cpu->last == &heddle_no_block ? get_rip(cpu) + 1 : heddle_block_end(cpu->last);
  switch (err) {
    case UC_ERR_EXCEPTION:
      if (cpu->buffers) heddle_buffers_faulted(cpu->buffers, cpu->fault_page);
      if (cpu->access != HEDDLE_FETCH) uncount(cpu);
      cpu->ahead = cpu->access == HEDDLE_FETCH && !cpu->stepping && (get_rip(cpu) ^ cpu->fault_page) >= HEDDLE_PAGE_SIZE;
      if (cpu->walk == HEDDLE_WALK_CODE) {
        supply_stopped(cpu, block_end);
        if (cpu->walk == HEDDLE_WALK_OK) return HEDDLE_STOP_NONE;
      }
      return cpu->walk == HEDDLE_WALK_NO_MEMORY ? HEDDLE_STOP_NO_MEMORY : HEDDLE_STOP_FAULT;
    case UC_ERR_INSN_INVALID:
      uncount(cpu);
      cpu->vector = VECTOR_INVALID_OPCODE;
      return HEDDLE_STOP_EXCEPTION;
    default:
      cpu->error = err;
      return HEDDLE_STOP_ENGINE;
  }
}

// The run was stopped within its last block, at the point that was armed.
static void uncount_rest(struct heddle_cpu *cpu) {
  cpu->instructions_left += heddle_block_count(cpu->last) - (int64_t)cpu->armed.count;
  cpu->cycles_left += cpu->armed.rest_cost;
  cpu->last = &heddle_no_block;
}

// The engine believes that an exception it reported is still being delivered,
// and would make the next one a double fault. Only a context from before knows
// better.
static void forget_exception(struct heddle_cpu *cpu) {
  struct heddle_regs r;
  uint8_t fp[512] __attribute__((aligned(16)));
  heddle_cpu_get_regs(cpu, &r);
  heddle_cpu_get_fp(cpu, fp);
  uc_context_restore(cpu->uc, cpu->clean);
  heddle_cpu_set_regs(cpu, &r);
  heddle_cpu_set_fp(cpu, fp);
}

enum heddle_stop heddle_excepted(struct heddle_cpu *cpu, bool software) {
  if (software) return HEDDLE_STOP_INTERRUPT;
  uncount(cpu);
  if (cpu->vector == 0 || (cpu->vector >= 10 && cpu->vector <= 13)) forget_exception(cpu);
  return HEDDLE_STOP_EXCEPTION;
}

// Whether the exception comes from INT n: then the PC is behind it.
static bool is_software(struct heddle_cpu *cpu) {
  if (cpu->last == &heddle_no_block || cpu->vector == VECTOR_INVALID_OPCODE) return false;
  uint8_t code[2];
  uint64_t pc = get_rip(cpu);
  if (pc != heddle_block_end(cpu->last)) return false;
  if (heddle_space_code(cpu->space, pc - 2, code, 2) != 2) return false;
  return code[1] == 0xcc || (code[0] == 0xcd && code[1] == cpu->vector) || code[1] == 0xf1;
}

static enum heddle_stop outcome(struct heddle_cpu *cpu, uc_err err) {
  if (err) return heddle_failed(cpu, err);
  if (cpu->stop == HEDDLE_STOP_EXCEPTION) return heddle_excepted(cpu, is_software(cpu));
  if (cpu->at_point) uncount_rest(cpu);
  return cpu->stop;
}

// Logs where the last block went that ran to its end.
static void settle(struct heddle_cpu *cpu) {
  const struct heddle_block *last = cpu->last;
  if (last == &heddle_no_block) return;
  uint64_t pc = get_rip(cpu);
  if (cpu->log.counts) heddle_log_branch(cpu, heddle_block_kind(last), heddle_block_end(last), pc);
  heddle_come_to(cpu, pc);
}

static enum heddle_stop run_on(struct heddle_cpu *cpu) {
  enum heddle_stop why;
  cpu->memory.running = true;
  cpu->atomics.at = false;
  bool stays = heddle_inside_resume(cpu);
  why = stays ? HEDDLE_STOP_BUDGET : heddle_inside_finish(cpu);
  while (!why) {
    cpu->pause_pending = false;
    if (cpu->resume_end && (why = heddle_finish_block(cpu))) break;
    int64_t before = cpu->instructions_left;
    why = outcome(cpu, heddle_start(cpu));
    if (heddle_paused(cpu)) why = HEDDLE_STOP_PAUSE;
    if (cpu->instructions_left != before) cpu->passed = false;
    settle(cpu);
    if (!why && cpu->stepped) why = heddle_step_block(cpu, cpu->stepped, cpu->stepped_end);
  }
  enum heddle_stop inside = HEDDLE_STOP_NONE;
  if (why == HEDDLE_STOP_BUDGET && !cpu->at_point) inside = heddle_inside_ends(cpu, get_rip(cpu));
  if (inside) why = inside;
  cpu->memory.running = false;
  heddle_log_flush(cpu);
  cpu->instructions = heddle_cpu_instructions_now(cpu);
  cpu->cycles = heddle_cpu_cycles_now(cpu);
  cpu->pc = cpu->at_point ? cpu->armed.at : get_rip(cpu);
  return cpu->stop = why;
}

// Sets the flags of blocks that a run has to look at.
void heddle_watch(struct heddle_cpu *cpu, uint32_t run_flags) {
  uint32_t watched = HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL | heddle_pause_watched(cpu, run_flags);
  if ((run_flags & HEDDLE_RUN_SYNC) || cpu->atomics.on) watched |= HEDDLE_BLOCK_SYNC;
  if (cpu->buffers || cpu->views) watched |= HEDDLE_BLOCK_SYNC | HEDDLE_BLOCK_ORDER;
  if (watched == cpu->watched) return;
  uint32_t more = watched & ~cpu->watched;
  bool only_pause = !((watched ^ cpu->watched) & ~(uint32_t)HEDDLE_BLOCK_PAUSES);
  cpu->watched = watched;
  if (!only_pause) heddle_blocks_forget(&cpu->blocks);
  else if (more) heddle_pause_take_out(cpu);
}

// Saves the registers of one thread, unless it is NULL, and loads those of another.
void heddle_cpu_switch(struct heddle_cpu *cpu, uc_context *from, uc_context *to) {
  if (from) uc_context_save(cpu->uc, from);
  uc_context_restore(cpu->uc, to);
}

// Runs the loaded thread until something stops it. The counts of the run are in
// instructions and cycles.
enum heddle_stop heddle_cpu_run(struct heddle_cpu *cpu, uint64_t instructions, uint64_t most, uint64_t cycles,
                                uint32_t flags) {
  cpu->most = most < INT64_MAX ? (int64_t)most : INT64_MAX;
  cpu->instruction_limit = cpu->instructions_left = instructions < INT64_MAX ? (int64_t)instructions : INT64_MAX;
  cpu->cycle_limit = cpu->cycles_left = cycles < INT64_MAX ? (int64_t)cycles : INT64_MAX;
  flags = heddle_pause_begin(cpu, flags);
  heddle_watch(cpu, flags);
  cpu->run_flags = flags;
  cpu->passed = cpu->pass_sync = flags & HEDDLE_RUN_PASS;
  cpu->pass_at = 0;
  cpu->resume_end = 0;
  cpu->straight = 0;
  cpu->log.repeated = 0;
  cpu->look_at = cpu->look_every;
  cpu->ran = true;
  return run_on(cpu);
}

// heddle_cpu_run with another thread loaded first, unless to is 0. The addresses are
// numbers because Go looks at each pointer that it hands over.
enum heddle_stop heddle_cpu_run_other(uintptr_t cpu, uintptr_t from, uintptr_t to, uint64_t instructions, uint64_t most,
                                      uint64_t cycles, uint32_t flags) {
  struct heddle_cpu *c = (struct heddle_cpu *)cpu;
  if (to) heddle_cpu_switch(c, (uc_context *)from, (uc_context *)to);
  return heddle_cpu_run(c, instructions, most, cycles, flags);
}

// Goes on with a run that a fault stopped, once its cause is gone, or that was
// stopped by a breakpoint or for its log. The counts and budgets are those of
// the whole run, which ends where it would have ended without the stop.
enum heddle_stop heddle_cpu_resume(struct heddle_cpu *cpu) {
  if (cpu->stop == HEDDLE_STOP_BREAKPOINT) {
    cpu->passed = true;
    cpu->pass_sync = false;  // where the run ends by itself is another matter
  }
  cpu->pass_at = cpu->instructions;
  cpu->look_at = cpu->instructions + cpu->look_every;
  return run_on(cpu);
}

// Has the run that was stopped by a fault ahead of the PC continue one instruction at a
// time up to the page that is not there: whether the program reaches it is not known.
void heddle_cpu_step_ahead(struct heddle_cpu *cpu) {
  cpu->resume_end = (get_rip(cpu) | (HEDDLE_PAGE_SIZE - 1)) + 1;
  cpu->resume_checked = true;
}

int heddle_cpu_breakpoints(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  uint64_t *copy = malloc((n ? n : 1) * sizeof *copy);
  if (!copy) return -1;
  memcpy(copy, sorted, n * sizeof *copy);
  heddle_blocks_broken(cpu, sorted, n);
  free(cpu->breakpoints);
  cpu->breakpoints = copy;
  cpu->nbreakpoints = n;
  return 0;
}

// ---- setting up -------------------------------------------------------------

// Leaves privilege level 0: writing CS does not, so an IRETQ is executed once,
// with descriptors for user data and code where Linux has them.
static int enter_user_mode(struct heddle_cpu *cpu) {
  uint64_t page = heddle_ram_alloc(cpu->ram, true);
  if (page == HEDDLE_NO_PAGE) return UC_ERR_NOMEM;
  uint64_t base = WINDOW + (page << HEDDLE_PAGE_SHIFT);
  uint8_t *bytes = heddle_ram_bytes(cpu->ram, page);
  uint64_t *gdt = (uint64_t *)bytes, *frame = (uint64_t *)(bytes + 0x200);
  gdt[5] = 0x00cff3000000ffff;  // user data, selector 0x2b
  gdt[6] = 0x00affb000000ffff;  // user code, selector 0x33
  memcpy(bytes + 0x100, (uint8_t[]){0x48, 0xcf}, 2);
  frame[0] = 0x1000;  // RIP, where nothing is mapped
  frame[1] = 0x33;
  frame[2] = 2;
  frame[3] = 0;
  frame[4] = 0x2b;
  uc_x86_mmr gdtr = {.base = base, .limit = 0x3f};
  uc_reg_write(cpu->uc, UC_X86_REG_GDTR, &gdtr);
  set_reg(cpu, UC_X86_REG_RSP, base + 0x200);
  cpu->window = true;
  cpu->stepping = true;
  uc_err err = uc_emu_start(cpu->uc, base + 0x100, 0, 0, 0);
  cpu->window = cpu->stepping = false;
  uint64_t rip = get_rip(cpu);
  gdtr = (uc_x86_mmr){0};
  uc_reg_write(cpu->uc, UC_X86_REG_GDTR, &gdtr);
  heddle_ram_written(cpu->ram, page);
  heddle_ram_unref(cpu->ram, page);
  return err == UC_ERR_EXCEPTION && rip == 0x1000 ? 0 : (err ? err : UC_ERR_EXCEPTION);
}

#define CR0_MP 0x2u
#define CR0_NE 0x20u
#define CR4_TSD 0x4u
#define CR4_OSFXSR 0x200u
#define CR4_OSXMMEXCPT 0x400u

int heddle_cpu_init(struct heddle_cpu *cpu, uc_engine *uc, struct heddle_ram *ram, uint32_t cores) {
  int err;
  cpu->uc = uc;
  cpu->ram = ram;
  cpu->cores = cores;
  cpu->tsc_multiplier = 1024;
  cpu->last = &heddle_no_block;
  cpu->outcomes = 1;
  cpu->outcomes_full = (uint64_t)1 << HEDDLE_LOG_MOST;
  cpu->fill_budget = 512;
  ZydisDecoderInit(&cpu->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  if (heddle_blocks_init(&cpu->blocks)) return UC_ERR_NOMEM;
  cpu->table = cpu->blocks.table;
  if ((err = uc_ctl_tlb_mode(uc, UC_TLB_VIRTUAL))) return err;
  if ((err = heddle_hooks_add(cpu))) return err;
  set_reg(cpu, UC_X86_REG_CR0, get_reg(cpu, UC_X86_REG_CR0) | CR0_MP | CR0_NE);
  set_reg(cpu, UC_X86_REG_CR4, get_reg(cpu, UC_X86_REG_CR4) | CR4_TSD | CR4_OSFXSR | CR4_OSXMMEXCPT);
  if ((err = enter_user_mode(cpu))) return err;
  static const struct heddle_regs zero = {.rflags = 0x202};
  heddle_cpu_set_regs(cpu, &zero);
  uint8_t fp[512] __attribute__((aligned(16))) = {0x7f, 0x03};
  fp[24] = 0x80;  // MXCSR 0x1f80
  fp[25] = 0x1f;
  heddle_cpu_set_fp(cpu, fp);
  if ((err = uc_context_alloc(uc, &cpu->clean))) return err;
  if ((err = uc_context_save(uc, cpu->clean))) return err;
  err = heddle_sse_init(cpu);
  cpu->ran = false;
  return err;
}

// Begins to log branches and code. Nothing may have run yet: the hook is part
// of what is translated, and to throw that away takes the engine a third of a
// second and a gigabyte.
int heddle_cpu_log(struct heddle_cpu *cpu, bool timed) {
  if (cpu->ran) return UC_ERR_ARG;
  if (heddle_log_start(cpu, timed)) return UC_ERR_NOMEM;
  return heddle_cpu_count_branches(cpu);
}

void heddle_cpu_close(struct heddle_cpu *cpu) {
  for (unsigned i = 0; i < cpu->nhooks; i++) uc_hook_del(cpu->uc, cpu->hooks[i]);
  if (cpu->clean) uc_context_free(cpu->clean);
  if (cpu->spare) uc_context_free(cpu->spare);
  free(cpu->breakpoints);
  free(cpu->points);
  free(cpu->point_hooks);
  heddle_blocks_close(&cpu->blocks);
  heddle_log_close(&cpu->log);
  heddle_atomics_close(cpu);
  heddle_insns_close(&cpu->insns);
  heddle_buffers_close(cpu);
  heddle_views_close(cpu);
  heddle_mem_close(cpu);
}
