#include "run.h"

#include "sse.h"
#include "special.h"
#include "storehook.h"

#include <stdlib.h>
#include <string.h>

// Removes the engine's translations of pages that something other than the engine has changed. The
// engine takes virtual addresses only, hence the window.
static void drop_stale_translations(struct heddle_cpu *cpu) {
  struct heddle_ram *ram = cpu->ram;
  if (!ram->nstale) return;
  cpu->engine.window_open = true;
  while (ram->nstale) {
    uint64_t page = ram->stale[--ram->nstale];
    ram->flags[page] &= (uint8_t)~(HEDDLE_PAGE_STALE | HEDDLE_PAGE_CODE);
    uint64_t va = WINDOW + (page << HEDDLE_PAGE_SHIFT);
    uc_ctl_remove_cache(cpu->engine.uc, va, va + HEDDLE_PAGE_SIZE);
  }
  cpu->engine.window_open = false;
  cpu->engine.cached_space = NULL;
}

// Empties the engine's buffer of translated code before it is full: if the engine empties it in the
// middle of a run, it damages its own memory.
static void empty_code_buffer(struct heddle_cpu *cpu) {
  if (!cpu->engine.code_full) return;
  uc_ctl_flush_tb(cpu->engine.uc);
  cpu->engine.code_full = false;
}

static void update_caches(struct heddle_cpu *cpu) {
  drop_stale_translations(cpu);
  empty_code_buffer(cpu);
  bool current = cpu->engine.cached_space == cpu->space && cpu->engine.cached_version == cpu->space->version &&
      !cpu->logs.memory.core.flush;
  if (current && cpu->engine.fills < cpu->engine.fill_limit) return;
  // The engine's cache of address translations has 256 entries at first and grows only at flushes.
  // If it is too small, it is flushed to grow, at longer and longer intervals.
  if (current) cpu->engine.fill_limit *= 2;
  cpu->engine.fills = 0;
  cpu->logs.memory.epoch++;
  cpu->logs.memory.core.flush = false;
  uc_ctl_flush_tlb(cpu->engine.uc);
  if (cpu->store_hook) heddle_store_hook_flushed(cpu);
  cpu->engine.cached_space = cpu->space;
  cpu->engine.cached_version = cpu->space->version;
}

uc_err heddle_start_engine(struct heddle_cpu *cpu) {
  heddle_mem_drop_ended(&cpu->logs.memory);
  heddle_mem_hooks_regained(&cpu->logs.memory);
  uint64_t pc = get_rip(cpu);
  heddle_pause_prepare(cpu, pc);
  update_caches(cpu);
  bool slow = is_stepping(cpu) || cpu->run.checks_alignment;
  cpu->run.tag = slow ? HEDDLE_NO_TAG : heddle_blocks_tag(&cpu->blocks, cpu->space->code);
  cpu->run.stop = HEDDLE_STOP_NONE;
  cpu->run.last_block = &heddle_no_block;
  cpu->run.step_from = cpu->run.stopped_before = cpu->stops.armed.at = 0;
  if (!is_stepping(cpu)) {
    cpu->run.state = HEDDLE_STATE_BLOCKS;
    grant_budget(cpu);
  }
  heddle_pause_patch(cpu, pc);
  uc_err err = uc_emu_start(cpu->engine.uc, pc, 0, 0, 0);
  heddle_pause_restore(cpu);
  reclaim_budget(cpu);
  // With a code hook, the engine leaves the PC at the previous instruction when it stops in the
  // hook of a block.
  if ((cpu->logs.memory.core.on || cpu->logs.instructions.on || cpu->stops.npoints) && cpu->run.stopped_before)
    set_reg(cpu, UC_X86_REG_RIP, cpu->run.stopped_before);
  return err;
}

// The instruction at the PC has not completed: subtracts it and the rest of its block from the
// counts.
static void uncount_from_pc(struct heddle_cpu *cpu) {
  if (cpu->logs.memory.pc == get_rip(cpu)) heddle_mem_undo(&cpu->logs.memory.core);
  if (is_stepping(cpu) || cpu->run.last_block == &heddle_no_block) return;
  uint64_t pc = get_rip(cpu), start = heddle_block_pc(cpu->run.last_block), end = heddle_block_end(cpu->run.last_block);
  if (pc < start || pc >= end) return;
  cpu->run.last_block = &heddle_no_block;
  struct heddle_block_facts rest = heddle_measure_block(cpu, pc, end);
  cpu->run.instructions_left += rest.count;
  cpu->run.cycles_left += rest.cost;
  if (pc > start) {
    keep_rest(cpu, end, cpu->stops.armed.at);
  }
}

// Supplies the page of an access that must not be made while the engine runs. A store that changes
// code may change the rest of its own block: both are executed one instruction at a time.
static void supply_page(struct heddle_cpu *cpu, uint64_t block_end) {
  uint64_t pte;
  cpu->run.fault_kind = heddle_space_walk(cpu->space, cpu->run.fault_page, cpu->run.fault_access, true, &pte);
  if (cpu->run.fault_access != HEDDLE_FETCH) heddle_insns_retract(cpu, get_rip(cpu));
  if (cpu->run.fault_kind || cpu->run.fault_access != HEDDLE_WRITE) return;
  heddle_ram_written(cpu->ram, pte >> HEDDLE_PAGE_SHIFT);
  if (!is_stepping(cpu) && !cpu->run.rest_end) keep_rest(cpu, block_end, cpu->stops.armed.at);
}

// Returns the stop reason for an error of the engine; HEDDLE_STOP_NONE: the run continues.
enum heddle_stop heddle_handle_failure(struct heddle_cpu *cpu, uc_err err) {
  uint64_t block_end = cpu->run.last_block == &heddle_no_block ? get_rip(cpu) + 1 : heddle_block_end(cpu->run.last_block);
  switch (err) {
    case UC_ERR_EXCEPTION:
      if (cpu->buffers) heddle_buffers_faulted(cpu->buffers, cpu->run.fault_page);
      if (cpu->run.fault_access != HEDDLE_FETCH) uncount_from_pc(cpu);
      cpu->run.fault_ahead = cpu->run.fault_access == HEDDLE_FETCH && !is_stepping(cpu) &&
          (get_rip(cpu) ^ cpu->run.fault_page) >= HEDDLE_PAGE_SIZE;
      if (cpu->run.fault_kind == HEDDLE_WALK_CODE) {
        supply_page(cpu, block_end);
        if (cpu->run.fault_kind == HEDDLE_WALK_OK) return HEDDLE_STOP_NONE;
      }
      if (cpu->run.fault_access != HEDDLE_FETCH) {
        cpu->run.vector = heddle_special_address_vector(cpu, get_rip(cpu), cpu->run.fault_page);
        if (cpu->run.vector != HEDDLE_NO_VECTOR) return HEDDLE_STOP_EXCEPTION;
      }
      return cpu->run.fault_kind == HEDDLE_WALK_NO_MEMORY ? HEDDLE_STOP_NO_MEMORY : HEDDLE_STOP_FAULT;
    case UC_ERR_INSN_INVALID:
      uncount_from_pc(cpu);
      cpu->run.vector = VECTOR_INVALID_OPCODE;
      return HEDDLE_STOP_EXCEPTION;
    default:
      cpu->run.error = err;
      return HEDDLE_STOP_ENGINE;
  }
}

// The run has stopped within its last block, at the armed point: subtracts the rest of the block
// from the counts.
static void uncount_after_point(struct heddle_cpu *cpu) {
  cpu->run.instructions_left += heddle_block_count(cpu->run.last_block) - (int64_t)cpu->stops.armed.count;
  cpu->run.cycles_left += cpu->stops.armed.rest_cost;
  cpu->run.last_block = &heddle_no_block;
}

// The engine treats an exception that it has reported as one in delivery, and would turn the next
// one into a double fault. Only restoring a context from before the exception resets that.
static void forget_exception(struct heddle_cpu *cpu) {
  struct heddle_regs r;
  uint8_t fp[512] __attribute__((aligned(16)));
  heddle_cpu_get_regs(cpu, &r);
  heddle_cpu_get_fp(cpu, fp);
  uc_context_restore(cpu->engine.uc, cpu->engine.initial);
  heddle_cpu_set_regs(cpu, &r);
  heddle_cpu_set_fp(cpu, fp);
}

enum heddle_stop heddle_handle_exception(struct heddle_cpu *cpu, bool software) {
  if (software) return HEDDLE_STOP_INTERRUPT;
  uncount_from_pc(cpu);
  if (cpu->run.vector == 0 || (cpu->run.vector >= 10 && cpu->run.vector <= 13)) forget_exception(cpu);
  return HEDDLE_STOP_EXCEPTION;
}

// Reports whether the exception was raised by INT n. The PC is then after the instruction.
static bool is_software_interrupt(struct heddle_cpu *cpu) {
  if (cpu->run.last_block == &heddle_no_block || cpu->run.vector == VECTOR_INVALID_OPCODE) return false;
  uint8_t code[2];
  uint64_t pc = get_rip(cpu);
  if (pc != heddle_block_end(cpu->run.last_block)) return false;
  if (heddle_space_code(cpu->space, pc - 2, code, 2) != 2) return false;
  return code[1] == 0xcc || (code[0] == 0xcd && code[1] == cpu->run.vector) || code[1] == 0xf1;
}

static enum heddle_stop stop_reason(struct heddle_cpu *cpu, uc_err err) {
  if (err) return heddle_handle_failure(cpu, err);
  if (cpu->run.stop == HEDDLE_STOP_EXCEPTION) return heddle_handle_exception(cpu, is_software_interrupt(cpu));
  if (cpu->run.state == HEDDLE_STATE_AT_POINT) uncount_after_point(cpu);
  return cpu->run.stop;
}

// Logs the branch at the end of the last block, if that ran to its end.
static void finish_last_block(struct heddle_cpu *cpu) {
  const struct heddle_block *last = cpu->run.last_block;
  if (last == &heddle_no_block) return;
  uint64_t pc = get_rip(cpu);
  if (cpu->logs.flow.counts) heddle_log_branch(cpu, heddle_block_kind(last), heddle_block_end(last), pc);
  heddle_enter_block(cpu, pc);
}

static enum heddle_stop run_loop(struct heddle_cpu *cpu) {
  enum heddle_stop why;
  cpu->run.state = HEDDLE_STATE_BLOCKS;
  heddle_special_note_flags(cpu);
  cpu->logs.atomics.at = false;
  bool stays = heddle_inside_stay(&cpu->inside);
  why = stays ? HEDDLE_STOP_BUDGET : heddle_inside_finish(&cpu->inside);
  while (!why) {
    cpu->run.state = HEDDLE_STATE_BLOCKS;
    if (cpu->run.rest_end && (why = heddle_finish_block(cpu))) break;
    int64_t before = cpu->run.instructions_left;
    why = stop_reason(cpu, heddle_start_engine(cpu));
    if (heddle_pause_is_done(cpu)) why = HEDDLE_STOP_PAUSE;
    if (cpu->run.instructions_left != before) cpu->run.pass = HEDDLE_PASS_NOTHING;
    finish_last_block(cpu);
    if (!why && cpu->run.state == HEDDLE_STATE_AT_BLOCK)
      why = heddle_step_block(cpu, cpu->run.step_from, cpu->run.step_end);
  }
  enum heddle_stop inside = HEDDLE_STOP_NONE;
  bool at_point = cpu->run.state == HEDDLE_STATE_AT_POINT;
  if (why == HEDDLE_STOP_BUDGET && !at_point) inside = heddle_inside_end(&cpu->inside, get_rip(cpu));
  if (inside) why = inside;
  heddle_log_flush(cpu);
  cpu->run.instructions = heddle_cpu_instructions_now(cpu);
  cpu->run.cycles = heddle_cpu_cycles_now(cpu);
  cpu->run.end_pc = at_point ? cpu->stops.armed.at : get_rip(cpu);
  cpu->run.state = HEDDLE_STATE_IDLE;
  return cpu->run.stop = why;
}

// Sets the flags of blocks that the run must examine. Blocks with such a flag are not in the table.
void heddle_set_watched(struct heddle_cpu *cpu, uint32_t run_flags) {
  uint32_t watched = HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL | heddle_pause_watched(cpu, run_flags);
  if ((run_flags & HEDDLE_RUN_SYNC) || cpu->logs.atomics.on) watched |= HEDDLE_BLOCK_SYNC;
  if (cpu->buffers || cpu->private_pages) watched |= HEDDLE_BLOCK_SYNC | HEDDLE_BLOCK_ORDER;
  if (watched == cpu->run.watched) return;
  uint32_t more = watched & ~cpu->run.watched;
  bool only_pause = !((watched ^ cpu->run.watched) & ~(uint32_t)HEDDLE_BLOCK_PAUSES);
  cpu->run.watched = watched;
  if (!only_pause) heddle_blocks_forget(&cpu->blocks);
  else if (more) heddle_pause_evict(cpu);
}

// Saves the registers of one thread, unless from is NULL, and loads those of another.
void heddle_cpu_switch(struct heddle_cpu *cpu, uc_context *from, uc_context *to) {
  if (from) uc_context_save(cpu->engine.uc, from);
  uc_context_restore(cpu->engine.uc, to);
}

// Runs the loaded thread until something stops it. Afterwards run.instructions and run.cycles are
// the counts of the run.
enum heddle_stop heddle_cpu_run(struct heddle_cpu *cpu, uint64_t instructions, uint64_t most, uint64_t cycles,
                                uint32_t flags) {
  cpu->run.exact_limit = most < INT64_MAX ? (int64_t)most : INT64_MAX;
  cpu->run.instruction_limit = cpu->run.instructions_left =
      instructions < INT64_MAX ? (int64_t)instructions : INT64_MAX;
  cpu->run.cycle_limit = cpu->run.cycles_left = cycles < INT64_MAX ? (int64_t)cycles : INT64_MAX;
  flags = heddle_pause_run_flags(cpu, flags);
  heddle_set_watched(cpu, flags);
  cpu->run.flags = flags;
  cpu->run.pass = flags & HEDDLE_RUN_PASS ? HEDDLE_PASS_ALL : HEDDLE_PASS_NOTHING;
  cpu->run.pass_at = 0;
  cpu->run.rest_end = 0;
  cpu->run.fallthrough_pc = 0;
  cpu->logs.flow.repeated = 0;
  cpu->stops.poll_at = cpu->stops.poll_interval;
  cpu->engine.has_run = true;
  return run_loop(cpu);
}

// heddle_cpu_run with another thread loaded first, unless to is 0. The addresses are passed as
// numbers because cgo checks every pointer argument.
enum heddle_stop heddle_cpu_run_other(uintptr_t cpu, uintptr_t from, uintptr_t to, uint64_t instructions, uint64_t most,
                                      uint64_t cycles, uint32_t flags) {
  struct heddle_cpu *c = (struct heddle_cpu *)cpu;
  if (to) heddle_cpu_switch(c, (uc_context *)from, (uc_context *)to);
  return heddle_cpu_run(c, instructions, most, cycles, flags);
}

// Continues a run that was stopped by a fault whose cause is gone, by a breakpoint, or for a full
// log. The counts and budgets are those of the whole run, which ends where it would have ended
// without the stop.
enum heddle_stop heddle_cpu_resume(struct heddle_cpu *cpu) {
  // A stop of RUN_SYNC at the same instruction still takes place.
  if (cpu->run.stop == HEDDLE_STOP_BREAKPOINT) cpu->run.pass = HEDDLE_PASS_BREAKPOINT;
  cpu->run.pass_at = cpu->run.instructions;
  cpu->stops.poll_at = cpu->run.instructions + cpu->stops.poll_interval;
  return run_loop(cpu);
}

// Makes a run that was stopped by a fault ahead of the PC continue one instruction at a time up to
// the missing page, since the program may never reach that page.
void heddle_cpu_step_ahead(struct heddle_cpu *cpu) {
  keep_rest(cpu, (get_rip(cpu) | (HEDDLE_PAGE_SIZE - 1)) + 1, true);
}

int heddle_cpu_breakpoints(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  uint64_t *copy = malloc((n ? n : 1) * sizeof *copy);
  if (!copy) return -1;
  memcpy(copy, sorted, n * sizeof *copy);
  heddle_blocks_evict(cpu, sorted, n);
  free(cpu->stops.breakpoints);
  cpu->stops.breakpoints = copy;
  cpu->stops.nbreakpoints = n;
  return 0;
}

// ---- initialization ---------------------------------------------------------

// Leaves privilege level 0. Writing CS does not, so an IRETQ is executed once, with descriptors for
// user data and code at the selectors that Linux uses.
static int enter_user_mode(struct heddle_cpu *cpu) {
  uint64_t page = heddle_ram_alloc(cpu->ram, true);
  if (page == HEDDLE_NO_PAGE) return UC_ERR_NOMEM;
  uint64_t base = WINDOW + (page << HEDDLE_PAGE_SHIFT);
  uint8_t *bytes = heddle_ram_bytes(cpu->ram, page);
  uint64_t *gdt = (uint64_t *)bytes, *frame = (uint64_t *)(bytes + 0x200);
  gdt[5] = 0x00cff3000000ffff;  // user data, selector 0x2b
  gdt[6] = 0x00affb000000ffff;  // user code, selector 0x33
  memcpy(bytes + 0x100, (uint8_t[]){0x48, 0xcf}, 2);
  frame[0] = 0x1000;  // RIP; nothing is mapped there
  frame[1] = 0x33;
  frame[2] = 2;
  frame[3] = 0;
  frame[4] = 0x2b;
  uc_x86_mmr gdtr = {.base = base, .limit = 0x3f};
  uc_reg_write(cpu->engine.uc, UC_X86_REG_GDTR, &gdtr);
  set_reg(cpu, UC_X86_REG_RSP, base + 0x200);
  cpu->engine.window_open = true;
  cpu->run.state = HEDDLE_STATE_STEP;
  uc_err err = uc_emu_start(cpu->engine.uc, base + 0x100, 0, 0, 0);
  cpu->engine.window_open = false;
  cpu->run.state = HEDDLE_STATE_IDLE;
  uint64_t rip = get_rip(cpu);
  gdtr = (uc_x86_mmr){0};
  uc_reg_write(cpu->engine.uc, UC_X86_REG_GDTR, &gdtr);
  heddle_ram_written(cpu->ram, page);
  heddle_ram_unref(cpu->ram, page);
  return err == UC_ERR_EXCEPTION && rip == 0x1000 ? 0 : (err ? err : UC_ERR_EXCEPTION);
}

#define CR0_MP 0x2u
#define CR0_NE 0x20u
#define CR4_TSD 0x4u
#define CR4_OSFXSR 0x200u
#define CR4_OSXMMEXCPT 0x400u

// The decoder of the guest's processor. Code of an instruction that it lacks, and that it takes for another one, is
// that other one: LZCNT is BSR, instructions of MPX and CET are NOPs.
static void init_decoder(ZydisDecoder *d) {
  static const ZydisDecoderMode off[] = {ZYDIS_DECODER_MODE_MPX,     ZYDIS_DECODER_MODE_CET,   ZYDIS_DECODER_MODE_CLDEMOTE,
                                         ZYDIS_DECODER_MODE_WBNOINVD, ZYDIS_DECODER_MODE_LZCNT, ZYDIS_DECODER_MODE_TZCNT};
  ZydisDecoderInit(d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecoderEnableMode(d, ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYAN_TRUE);
  for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) ZydisDecoderEnableMode(d, off[i], ZYAN_FALSE);
}

int heddle_cpu_init(struct heddle_cpu *cpu, uc_engine *uc, struct heddle_ram *ram, uint32_t cores) {
  int err;
  cpu->engine.uc = uc;
  cpu->ram = ram;
  cpu->cores = cores;
  cpu->tsc_multiplier = 1024;
  heddle_cpu_init_inside(cpu);
  cpu->run.last_block = &heddle_no_block;
  cpu->run.outcomes = 1;
  cpu->run.outcomes_full = (uint64_t)1 << HEDDLE_LOG_MOST;
  cpu->engine.fill_limit = 512;
  init_decoder(&cpu->decoder);
  if (heddle_blocks_init(&cpu->blocks)) return UC_ERR_NOMEM;
  cpu->run.table = cpu->blocks.table;
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
  if ((err = uc_context_alloc(uc, &cpu->engine.initial))) return err;
  if ((err = uc_context_save(uc, cpu->engine.initial))) return err;
  err = heddle_sse_init(cpu);
  cpu->engine.has_run = false;
  return err;
}

// Starts to log branches and code. Nothing may have run yet: the hook is part of the translated
// code, and discarding that takes the engine a third of a second and a gigabyte.
int heddle_cpu_log(struct heddle_cpu *cpu, bool timed) {
  if (heddle_log_start(cpu, timed)) return UC_ERR_NOMEM;
  return heddle_cpu_count_branches(cpu);
}

void heddle_cpu_close(struct heddle_cpu *cpu) {
  for (unsigned i = 0; i < cpu->engine.nhooks; i++) uc_hook_del(cpu->engine.uc, cpu->engine.hooks[i]);
  if (cpu->engine.initial) uc_context_free(cpu->engine.initial);
  if (cpu->engine.scratch) uc_context_free(cpu->engine.scratch);
  free(cpu->stops.breakpoints);
  free(cpu->stops.points);
  free(cpu->stops.point_hooks);
  heddle_blocks_close(&cpu->blocks);
  heddle_log_close(&cpu->logs.flow);
  heddle_atomics_close(cpu);
  heddle_insns_close(&cpu->logs.instructions);
  heddle_store_hook_close(cpu);
  heddle_cpu_close_private(cpu);
  heddle_mem_close(cpu);
}
