#include "cpu.h"

#include "buffers.h"
#include "sse.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

// Addresses from here on are the window on physical memory: address + page
// number * page size. It is open only while the engine is set up and while
// translations of a physical page are thrown away, never while a guest runs.
#define WINDOW 0xffff800000000000u

#define FLAG_ZF 0x40u
#define FLAG_TF 0x100u
#define VECTOR_DEBUG 1u
#define VECTOR_INVALID_OPCODE 6u
#define VECTOR_PROTECTION 13u

// ---- budget -----------------------------------------------------------------

#define HANDED_OUT_MOST INT64_C(0x7fffffff)
#define CONDITIONAL ((uint64_t)HEDDLE_KIND_COND << HEDDLE_KIND_SHIFT)

// What of a run's budget is used up.
uint64_t heddle_cpu_instructions_now(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->instruction_limit - cpu->instructions_left) - (uint32_t)cpu->left;
}

uint64_t heddle_cpu_cycles_now(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->cycle_limit - cpu->cycles_left) - (cpu->left >> 32);
}

static int64_t part(int64_t left) {
  if (left < 0) return 0;
  return left < HANDED_OUT_MOST ? left : HANDED_OUT_MOST;
}

// Whether the run has come to the instruction that it halts before.
static bool halts(const struct heddle_cpu *cpu) {
  return cpu->halt_at && heddle_cpu_instructions_now(cpu) == cpu->halt_at;
}

// How many instructions may run before the run halts.
static int64_t before_halt(const struct heddle_cpu *cpu) {
  uint64_t now = heddle_cpu_instructions_now(cpu);
  return cpu->halt_at && cpu->halt_at >= now ? (int64_t)(cpu->halt_at - now) : INT64_MAX;
}

// How many instructions may run at all.
static int64_t before_most(const struct heddle_cpu *cpu) {
  return cpu->most - (int64_t)heddle_cpu_instructions_now(cpu);
}

// Hands a part of the budget out to the block hook, which looks at cycles only.
static void hand_out(struct heddle_cpu *cpu) {
  int64_t most = part(cpu->instructions_left), cycles = part(cpu->cycles_left);
  if (most > cycles) most = cycles;
  if (most > before_halt(cpu)) most = before_halt(cpu);
  if (most > before_most(cpu)) most = part(before_most(cpu));
  cpu->instructions_left -= most;
  cpu->cycles_left -= most;
  cpu->left = (uint64_t)most << 32 | (uint64_t)most;
}

static void take_back(struct heddle_cpu *cpu) {
  cpu->instructions_left += (uint32_t)cpu->left;
  cpu->cycles_left += (int64_t)(cpu->left >> 32);
  cpu->left = 0;
}

static bool exhausted(const struct heddle_cpu *cpu) { return cpu->instructions_left <= 0 || cpu->cycles_left <= 0; }

// Whether the run ends here though the engine, not the program, has cut a straight
// run of instructions.
static bool ends_exactly(const struct heddle_cpu *cpu) {
  return ((cpu->run_flags & HEDDLE_RUN_EXACT) && exhausted(cpu)) || before_most(cpu) <= 0;
}

// How many instructions may run until the run ends exactly.
static int64_t before_exact(const struct heddle_cpu *cpu) {
  int64_t left = before_most(cpu);
  bool exact = cpu->run_flags & HEDDLE_RUN_EXACT;
  return exact && cpu->instructions_left < left ? cpu->instructions_left : left;
}

// Whether the run ends within the block because of its cycles.
static bool too_long(const struct heddle_cpu *cpu, const struct heddle_block *b) {
  return (cpu->run_flags & HEDDLE_RUN_EXACT) && heddle_block_cost(b) > cpu->cycles_left;
}

static void stop_now(struct heddle_cpu *cpu, enum heddle_stop why) {
  cpu->stop = why;
  uc_emu_stop(cpu->uc);
}

// ---- hooks ------------------------------------------------------------------

// The engine's buffer of translations: its own choice of 1 GiB would be host
// memory after the first time that it is emptied. A block takes half a kilobyte,
// the largest ones 60.
#define CODE_BUFFER (96u << 20)
#define CODE_MARGIN (4u << 20)

// Whether the block is the one that goes on after a breakpoint at its start, and
// has no other: calls and returns are followed by breakpoints at such places.
static bool may_pass(struct heddle_cpu *cpu, const struct heddle_block *b) {
  return cpu->passed && cpu->pass_at == heddle_cpu_instructions_now(cpu) &&
         !heddle_has_breakpoint(cpu, heddle_block_pc(b) + 1, heddle_block_end(b));
}

// Has the hook of an instruction of the block stop the run if it has one and the
// run ends before it.
static bool arm(struct heddle_cpu *cpu, const struct heddle_block *b) {
  if (!cpu->npoints || too_long(cpu, b)) return false;
  const struct heddle_cut *cut = heddle_cut_block(cpu, b, (uint64_t)before_exact(cpu));
  if (!heddle_any_within(cpu->points, cpu->npoints, cut->at, cut->at + 1)) return false;
  cpu->armed = *cut;
  return true;
}

static void on_point(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  (void)size;
  struct heddle_cpu *cpu = user;
  if (__builtin_expect(pc != cpu->armed.at || cpu->stepping, 1)) return;
  cpu->at_point = true;
  stop_now(cpu, HEDDLE_STOP_BUDGET);
}

// Decides at a block that may not simply run. Returns whether it was stopped.
static bool consider(struct heddle_cpu *cpu, const struct heddle_block *b) {
  uint64_t pc = heddle_block_pc(b);
  if (cpu->pause_pending) {
    stop_now(cpu, HEDDLE_STOP_PAUSE);
    return true;
  }
  if (cpu->ram->nstale || cpu->code_full || (cpu->memory.deaf && pc != cpu->memory.pc)) {
    stop_now(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  if ((exhausted(cpu) && !cpu->straight) || ends_exactly(cpu)) {
    stop_now(cpu, HEDDLE_STOP_BUDGET);
    return true;
  }
  if (heddle_log_full(&cpu->log) || heddle_atomics_full(&cpu->atomics)) {
    stop_now(cpu, HEDDLE_STOP_LOG);
    return true;
  }
  uint64_t look = HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL;
  if ((cpu->run_flags & HEDDLE_RUN_SYNC) || (cpu->atomics.on && !cpu->atomics.muted)) look |= HEDDLE_BLOCK_SYNC;
  if (cpu->buffers) look |= HEDDLE_BLOCK_SYNC | HEDDLE_BLOCK_ORDER;
  if (may_pass(cpu, b)) look &= ~(uint64_t)HEDDLE_BLOCK_BREAK;
  bool inside = heddle_block_flags(b) & look;
  inside |= heddle_block_count(b) > before_halt(cpu);
  if (!inside && (too_long(cpu, b) || heddle_block_count(b) > before_exact(cpu))) inside = !arm(cpu, b);
  if (inside) {
    // Something in the block needs attention: the run loop steps through it.
    cpu->inside = pc;
    cpu->inside_end = heddle_block_end(b);
    stop_now(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  if (cpu->views && (heddle_block_flags(b) & (HEDDLE_BLOCK_SYNC | HEDDLE_BLOCK_ORDER))) cpu->views->drain = true;
  if (heddle_block_flags(b) & HEDDLE_BLOCK_PAUSE) {
    cpu->pause_pending = true;
    cpu->tag = HEDDLE_NO_TAG;
  }
  return false;
}

// Notes where the run has come to after the block before. Where the engine cuts
// a straight run of instructions depends on its hooks: ends of runs must not.
static void come_to(struct heddle_cpu *cpu, uint64_t pc) {
  const struct heddle_block *last = cpu->last;
  if (last != &heddle_no_block)
    cpu->straight = heddle_block_kind(last) == HEDDLE_KIND_NONE && heddle_block_end(last) == pc ? pc : 0;
  else if (cpu->straight != pc) cpu->straight = 0;
  cpu->last = &heddle_no_block;
}

// Notes how full the engine's buffer of translations is. The hook returns into
// the block that calls it, blocks are translated one behind the other, and each
// new one comes this way.
static void watch_buffer(struct heddle_cpu *cpu, const void *caller) {
  uintptr_t at = (uintptr_t)caller;
  if (!cpu->code_start || at < cpu->code_start) cpu->code_start = at;
  if (at - cpu->code_start > CODE_BUFFER - CODE_MARGIN) cpu->code_full = true;
}

static __attribute__((noinline)) void on_block_slow(struct heddle_cpu *cpu, uint64_t pc, uint32_t size,
                                                    const void *caller) {
  watch_buffer(cpu, caller);
  if (cpu->stepping) return;
  take_back(cpu);
  come_to(cpu, pc);
  cpu->tag = heddle_blocks_tag(&cpu->blocks, cpu->space->code);
  struct heddle_block *b = heddle_block_slot(cpu->table, pc);
  if (b->key != (pc | cpu->tag)) {
    b = heddle_describe(cpu, pc, size);
    if (cpu->log.on) heddle_log_code(cpu, pc, size);
  }
  if (consider(cpu, b)) {
    cpu->stopped_at = pc;
    return;
  }
  cpu->instructions_left -= heddle_block_count(b);
  cpu->cycles_left -= heddle_block_cost(b);
  cpu->last = b;
  hand_out(cpu);
}

// The hottest function of all: it counts, and leaves everything else to the
// slow path.
static inline void pass_block(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, const void *caller) {
  const struct heddle_block *b = heddle_block_slot(cpu->table, pc);
  uint64_t left = cpu->left - b->take;
  if (__builtin_expect(b->key != (pc | cpu->tag) || (int64_t)left < 0, 0)) {
    on_block_slow(cpu, pc, size, caller);
    return;
  }
  cpu->left = left;
  cpu->last = b;
}

static void on_block(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  pass_block(user, pc, size, __builtin_return_address(0));
}

// pass_block for runs whose loads and stores are logged.
static inline void pass_remembered(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, const void *caller) {
  bool stop = heddle_log_full(&cpu->log) || cpu->memory.deaf;
  if (cpu->memory.pc == pc) heddle_mem_again(&cpu->memory);
  if (stop) on_block_slow(cpu, pc, size, caller);
  else pass_block(cpu, pc, size, caller);
}

// An instruction of the block before is tried again alone: the block came to no
// end, and the instruction is counted as whatever begins there.
static void count_again(struct heddle_cpu *cpu, uint64_t before) {
  uint64_t counted = heddle_cpu_instructions_now(cpu) - before;
  if (!counted) return;
  cpu->log.repeated += counted - 1;
  cpu->blocks.slow = *cpu->last;
  cpu->blocks.slow.end &= HEDDLE_ADDRESS;
  cpu->last = &cpu->blocks.slow;
}

// The block hook of runs whose branches are logged or counted, for all that is
// rare: where the block before went is known now.
static __attribute__((noinline)) void on_block_noted(struct heddle_cpu *cpu, uint64_t pc, uint32_t size,
                                                     const void *caller) {
  uint64_t before = heddle_cpu_instructions_now(cpu);
  const struct heddle_block *last = cpu->last;
  bool again = last != &heddle_no_block && heddle_log_again(cpu, pc, size);
  if (!again) heddle_log_branch(cpu, heddle_block_kind(last), heddle_block_end(last), pc);
  if (cpu->memory.on) pass_remembered(cpu, pc, size, caller);
  else pass_block(cpu, pc, size, caller);
  if (again) count_again(cpu, before);
}

// The rest of note_block where a word of outcomes is full, which is stamped
// with the time before the block.
static __attribute__((noinline)) void pass_full(struct heddle_cpu *cpu, const struct heddle_block *b) {
  heddle_log_flush(cpu);
  cpu->left -= b->take;
  cpu->last = b;
}

// The same for what is frequent. Whether a block ends with a conditional branch
// is as good as random, so there is no branch here that depends on it. A block
// that is tried again comes the rare way: it has just been translated, or a
// store to code has taken the tag away.
static inline void note_block(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, const void *caller) {
  const struct heddle_block *b = heddle_block_slot(cpu->table, pc);
  uint64_t left = cpu->left - b->take, end = cpu->last->end;
  bool alone = (uint32_t)b->end != (uint32_t)pc + size;
  if (__builtin_expect(b->key != (pc | cpu->tag) || alone || (int64_t)(left | end) < 0, 0)) {
    on_block_noted(cpu, pc, size, caller);
    return;
  }
  uint64_t conditional = end >> HEDDLE_KIND_SHIFT;
  uint64_t outcomes = cpu->outcomes << conditional | (conditional & ((pc | CONDITIONAL) != end));
  cpu->outcomes = outcomes;
  if (__builtin_expect(outcomes >= cpu->outcomes_full, 0)) {
    pass_full(cpu, b);
    return;
  }
  cpu->left = left;
  cpu->last = b;
}

static void on_block_logged(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  note_block(user, pc, size, __builtin_return_address(0));
}

static void on_block_remembered(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  const void *caller = __builtin_return_address(0);
  if (heddle_log_full(&cpu->log) || cpu->memory.deaf || cpu->memory.pc == pc) on_block_noted(cpu, pc, size, caller);
  else note_block(cpu, pc, size, caller);
}

static void on_translate(uc_engine *uc, uc_tb *cur, uc_tb *prev, void *user) {
  (void)uc;
  (void)prev;
  struct heddle_cpu *cpu = user;
  heddle_block_translated(cpu, cur->pc, cur->size);
  if (cpu->memory.on) heddle_mem_translated(&cpu->memory, cur->pc, cur->size);
}

static bool on_fill(uc_engine *uc, uint64_t va, uc_mem_type type, uc_tlb_entry *out, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  if (cpu->window && va >= WINDOW) {
    out->paddr = va - WINDOW;
    out->perms = UC_PROT_ALL;
    return true;
  }
  enum heddle_access access = type == UC_MEM_WRITE   ? HEDDLE_WRITE
                              : type == UC_MEM_FETCH ? HEDDLE_FETCH
                                                     : HEDDLE_READ;
  cpu->fills++;
  struct heddle_space *s = cpu->space;
  bool synced = s && cpu->seen_version == s->version;
  uint64_t pte;
  cpu->walk = s ? heddle_space_walk(s, va, access, false, &pte) : HEDDLE_WALK_ABSENT;
  if (cpu->views && !cpu->walk) cpu->walk = heddle_views_fill(cpu->views, va, access, &pte);
  if (cpu->walk) {
    cpu->access = access;
    cpu->fault_page = va;
    return false;
  }
  // The entry that the engine is given now replaces what it had.
  if (synced) cpu->seen_version = s->version;
  uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
  if ((pte & HEDDLE_PTE_SHARED) && (cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) {
    // Code is about to change, perhaps by another address than its own: its
    // translations go at the next block. Until then there is no right to write
    // in the engine's cache, so that this is noticed.
    if (access == HEDDLE_WRITE) {
      heddle_ram_written(cpu->ram, page);
      cpu->tag = HEDDLE_NO_TAG;
    } else {
      pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
    }
  }
  out->paddr = page << HEDDLE_PAGE_SHIFT;
  uint32_t perms = UC_PROT_NONE;
  if (pte & HEDDLE_PTE_READ) perms |= UC_PROT_READ;
  if (pte & HEDDLE_PTE_WRITE) perms |= UC_PROT_WRITE;
  // Without a fetch the page holds no translations; with the right to execute
  // in the engine's cache there would be no notice of the first.
  if ((pte & HEDDLE_PTE_EXEC) && (cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) perms |= UC_PROT_EXEC;
  if (cpu->memory.on) heddle_mem_filled(&cpu->memory, va, page, type, &perms);
  if (cpu->buffers) heddle_buffers_filled(cpu->buffers, va, page, type, &perms);
  out->perms = (uc_prot)perms;
  return true;
}

static void on_interrupt(uc_engine *uc, uint32_t vector, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  cpu->vector = vector;
  stop_now(cpu, HEDDLE_STOP_EXCEPTION);
}

static void on_syscall(uc_engine *uc, void *user) {
  (void)uc;
  stop_now(user, HEDDLE_STOP_SYSCALL);
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

// ---- running ----------------------------------------------------------------

static uint64_t get_rip(struct heddle_cpu *cpu) {
  uint64_t rip = 0;
  uc_reg_read(cpu->uc, UC_X86_REG_RIP, &rip);
  return rip;
}

static uint64_t get_reg(struct heddle_cpu *cpu, int reg) {
  uint64_t value = 0;
  uc_reg_read(cpu->uc, reg, &value);
  return value;
}

static void set_reg(struct heddle_cpu *cpu, int reg, uint64_t value) { uc_reg_write(cpu->uc, reg, &value); }

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

static uc_err start(struct heddle_cpu *cpu) {
  heddle_mem_heard(&cpu->memory);
  sync_caches(cpu);
  cpu->tag = cpu->stepping ? HEDDLE_NO_TAG : heddle_blocks_tag(&cpu->blocks, cpu->space->code);
  cpu->stop = HEDDLE_STOP_NONE;
  cpu->last = &heddle_no_block;
  cpu->inside = cpu->stopped_at = cpu->armed.at = 0;
  cpu->at_point = false;
  if (!cpu->stepping) hand_out(cpu);
  uc_err err = uc_emu_start(cpu->uc, get_rip(cpu), 0, 0, 0);
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

// What a failed start means. NONE: nothing, go on.
static enum heddle_stop failed(struct heddle_cpu *cpu, uc_err err) {
  switch (err) {
    case UC_ERR_EXCEPTION:
      if (cpu->buffers) heddle_buffers_faulted(cpu->buffers, cpu->fault_page);
      if (cpu->access != HEDDLE_FETCH) uncount(cpu);
      if (cpu->walk == HEDDLE_WALK_CODE) {
        uint64_t pte;
        cpu->walk = heddle_space_walk(cpu->space, cpu->fault_page, cpu->access, true, &pte);
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

static enum heddle_stop excepted(struct heddle_cpu *cpu, bool software) {
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
  if (err) return failed(cpu, err);
  if (cpu->stop == HEDDLE_STOP_EXCEPTION) return excepted(cpu, is_software(cpu));
  if (cpu->at_point) uncount_rest(cpu);
  return cpu->stop;
}

// RDTSC and RDTSCP, in virtual time.
static void emulate_tsc(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t tsc = (uint64_t)((unsigned __int128)(cpu->clock + heddle_cpu_cycles_now(cpu)) * cpu->tsc_multiplier >> 10);
  set_reg(cpu, UC_X86_REG_RAX, (uint32_t)tsc);
  set_reg(cpu, UC_X86_REG_RDX, tsc >> 32);
  if (in->mnemonic == ZYDIS_MNEMONIC_RDTSCP) set_reg(cpu, UC_X86_REG_RCX, cpu->core);
  set_reg(cpu, UC_X86_REG_RIP, get_rip(cpu) + in->length);
}

// Runs one instruction by the trap flag, which the guest must not see. SYSCALL
// stops by itself, and its hook must have the last word.
static enum heddle_stop trap_step(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t flags = get_reg(cpu, UC_X86_REG_RFLAGS);
  bool own = !(flags & FLAG_TF) && in->mnemonic != ZYDIS_MNEMONIC_SYSCALL;
  if (own) set_reg(cpu, UC_X86_REG_RFLAGS, flags | FLAG_TF);
  cpu->stepping = true;
  uc_err err = start(cpu);
  enum heddle_stop why;
  bool debug = !err && cpu->stop == HEDDLE_STOP_EXCEPTION && cpu->vector == VECTOR_DEBUG;
  if (err) why = failed(cpu, err);
  else if (debug) why = HEDDLE_STOP_NONE;
  else if (cpu->stop == HEDDLE_STOP_EXCEPTION) why = excepted(cpu, in->meta.category == ZYDIS_CATEGORY_INTERRUPT);
  else why = cpu->stop;
  cpu->stepping = false;
  bool popf = in->mnemonic == ZYDIS_MNEMONIC_POPFQ || in->mnemonic == ZYDIS_MNEMONIC_POPF;
  if (own && !(popf && debug)) set_reg(cpu, UC_X86_REG_RFLAGS, get_reg(cpu, UC_X86_REG_RFLAGS) & ~(uint64_t)FLAG_TF);
  if (debug && own && (in->mnemonic == ZYDIS_MNEMONIC_PUSHFQ || in->mnemonic == ZYDIS_MNEMONIC_PUSHF)) {
    uint16_t word;
    size_t done;
    uint64_t sp = get_reg(cpu, UC_X86_REG_RSP);
    heddle_space_read(cpu->space, sp, &word, sizeof word, &done);
    word &= (uint16_t)~FLAG_TF;
    heddle_space_write(cpu->space, sp, &word, sizeof word, &done);
  }
  bool retired = debug || why == HEDDLE_STOP_SYSCALL || why == HEDDLE_STOP_INTERRUPT;
  if (retired) {
    uint8_t unused = 0;
    cpu->instructions_left--;
    cpu->cycles_left -= heddle_cost(cpu, in, &unused);
  }
  return why;
}

// The number of instructions that a step retires is 1 or 0; what it did is in
// the branch log all the same.
static void log_step(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  uint64_t end = pc + in->length, rip = get_rip(cpu);
  enum heddle_kind kind = heddle_kind_of(in);
  cpu->straight = kind == HEDDLE_KIND_NONE && rip == end ? rip : 0;
  if (cpu->log.counts) heddle_log_branch(cpu, kind, end, rip);
}

// The count of a repeated string instruction.
static uint64_t rep_count(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t rcx = get_reg(cpu, UC_X86_REG_RCX);
  return in->address_width == 32 ? (uint32_t)rcx : rcx;
}

// Whether a comparison just ended the repetition.
static bool rep_ended_by_flag(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  bool equal = get_reg(cpu, UC_X86_REG_RFLAGS) & FLAG_ZF;
  return (in->attributes & ZYDIS_ATTRIB_HAS_REPE) ? !equal : (in->attributes & ZYDIS_ATTRIB_HAS_REPNE) && equal;
}

// Runs one iteration by the trap flag. Without it the engine comes back to the
// instruction once more when the count has reached zero, and so it must here,
// or counts and stops would depend on which instructions are stepped.
static enum heddle_stop rep_step(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  bool iterates = rep_count(cpu, in) != 0;
  enum heddle_stop why = trap_step(cpu, in);
  if (!why && iterates && !rep_count(cpu, in) && !rep_ended_by_flag(cpu, in)) set_reg(cpu, UC_X86_REG_RIP, pc);
  return why;
}

// Runs the instruction at pc alone.
static enum heddle_stop step(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in = {0};
  if (!heddle_decode(cpu, pc, &in)) in.mnemonic = ZYDIS_MNEMONIC_INVALID;
  if (in.mnemonic == ZYDIS_MNEMONIC_RDTSC || in.mnemonic == ZYDIS_MNEMONIC_RDTSCP) {
    emulate_tsc(cpu, &in);
    heddle_insns_meet(cpu, pc);
    cpu->instructions_left--;
    cpu->cycles_left -= cpu->costs.instruction;
    return HEDDLE_STOP_NONE;
  }
  if (in.meta.category == ZYDIS_CATEGORY_IO || in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP) {
    // Linux gives no process ports; the engine would.
    cpu->vector = VECTOR_PROTECTION;
    return HEDDLE_STOP_EXCEPTION;
  }
  if (cpu->log.on) heddle_log_code(cpu, pc, in.length);
  bool atomic = heddle_atomic_at(cpu, pc, &in);
  if (cpu->views) heddle_views_step(cpu->views, pc, &in);
  uint32_t order = cpu->buffers ? heddle_order_of(&in) : 0;
  if (order) heddle_buffers_before(cpu->buffers, order);
  uint64_t lengths[2];
  bool shortened = heddle_sse_shorten(cpu, &in, lengths);
  enum heddle_stop why = heddle_kind_of(&in) == HEDDLE_KIND_REP ? rep_step(cpu, pc, &in) : trap_step(cpu, &in);
  if (shortened) heddle_sse_restore(cpu, lengths);
  if (atomic) heddle_atomic_done(cpu, !why);
  if (order) heddle_buffers_after(cpu->buffers, order);
  if (why == HEDDLE_STOP_NONE) {
    log_step(cpu, pc, &in);
    if (heddle_sse_special(&in)) heddle_sse_after(cpu, pc, &in);
  }
  if (why == HEDDLE_STOP_NONE && in.mnemonic == ZYDIS_MNEMONIC_PAUSE && (cpu->run_flags & HEDDLE_RUN_PAUSE))
    return HEDDLE_STOP_PAUSE;
  return why;
}

// Whether the instruction at pc is one that RUN_SYNC stops before.
static bool sync_at(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in;
  uint8_t flags = 0;
  if (!heddle_decode(cpu, pc, &in)) return false;
  heddle_cost(cpu, &in, &flags);
  return flags & HEDDLE_BLOCK_SYNC;
}

static bool repeats(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in;
  return heddle_decode(cpu, pc, &in) && heddle_kind_of(&in) == HEDDLE_KIND_REP;
}

// Steps from the PC to the end of its block, with a look before each
// instruction. Breakpoints must not move the end of a run: without EXACT
// budgets are looked at where blocks start only, which was done. A repeated
// string instruction is a block of its own from its second iteration on.
static enum heddle_stop step_block(struct heddle_cpu *cpu, uint64_t from, uint64_t end) {
  uint64_t pc = from, last, start = cpu->inside;
  do {
    if (ends_exactly(cpu)) return HEDDLE_STOP_BUDGET;
    enum heddle_stop why = halts(cpu) ? HEDDLE_STOP_BREAKPOINT : HEDDLE_STOP_NONE;
    if (!why && !cpu->passed && heddle_has_breakpoint(cpu, pc, pc + 1)) why = HEDDLE_STOP_BREAKPOINT;
    if (!why && heddle_atomic_gate(cpu, pc)) why = HEDDLE_STOP_BREAKPOINT;
    if (!why && !(cpu->passed && cpu->pass_sync) && (cpu->run_flags & HEDDLE_RUN_SYNC) && sync_at(cpu, pc))
      why = HEDDLE_STOP_SYNC;
    int64_t before = cpu->instructions_left;
    if (!why) why = step(cpu, pc);
    last = pc;
    pc = get_rip(cpu);
    if (cpu->instructions_left != before && !(pc == last && repeats(cpu, pc))) cpu->passed = false;
    bool resumes = why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY || why == HEDDLE_STOP_BREAKPOINT;
    if (resumes && !(why == HEDDLE_STOP_BREAKPOINT && pc == start)) {
      cpu->resume_end = end;
      cpu->resume_checked = true;
    }
    if (why) return why;
  } while (pc > last && pc < end);
  return HEDDLE_STOP_NONE;
}

// Runs the rest of a block that a fault interrupted, as if nothing had
// happened: where blocks end, and so where budgets are looked at, must not
// depend on which pages were there.
static enum heddle_stop finish_block(struct heddle_cpu *cpu) {
  uint64_t end = cpu->resume_end, pc = get_rip(cpu), last;
  cpu->resume_end = 0;
  if (cpu->resume_checked) return step_block(cpu, pc, end);
  do {
    last = pc;
    enum heddle_stop why = halts(cpu) ? HEDDLE_STOP_BREAKPOINT : step(cpu, pc);
    pc = get_rip(cpu);
    if (why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY || why == HEDDLE_STOP_BREAKPOINT) {
      cpu->resume_end = end;
      cpu->resume_checked = false;
    }
    if (why) return why;
  } while (pc > last && pc < end);
  return HEDDLE_STOP_NONE;
}

// Logs where the last block went that ran to its end.
static void settle(struct heddle_cpu *cpu) {
  const struct heddle_block *last = cpu->last;
  if (last == &heddle_no_block) return;
  uint64_t pc = get_rip(cpu);
  if (cpu->log.counts) heddle_log_branch(cpu, heddle_block_kind(last), heddle_block_end(last), pc);
  come_to(cpu, pc);
}

static enum heddle_stop run_on(struct heddle_cpu *cpu) {
  enum heddle_stop why;
  cpu->memory.running = true;
  cpu->atomics.at = false;
  do {
    cpu->pause_pending = false;
    if (cpu->resume_end && (why = finish_block(cpu))) break;
    int64_t before = cpu->instructions_left;
    why = outcome(cpu, start(cpu));
    if (cpu->instructions_left != before) cpu->passed = false;
    settle(cpu);
    if (!why && cpu->inside) why = step_block(cpu, cpu->inside, cpu->inside_end);
  } while (!why);
  cpu->memory.running = false;
  heddle_log_flush(cpu);
  cpu->instructions = heddle_cpu_instructions_now(cpu);
  cpu->cycles = heddle_cpu_cycles_now(cpu);
  return cpu->stop = why;
}

// Sets the flags of blocks that a run has to look at.
static void watch(struct heddle_cpu *cpu, uint32_t run_flags) {
  uint32_t watched = HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL;
  if (run_flags & HEDDLE_RUN_PAUSE) watched |= HEDDLE_BLOCK_PAUSE;
  if ((run_flags & HEDDLE_RUN_SYNC) || cpu->atomics.on) watched |= HEDDLE_BLOCK_SYNC;
  if (cpu->buffers || cpu->views) watched |= HEDDLE_BLOCK_SYNC | HEDDLE_BLOCK_ORDER;
  if (watched == cpu->watched) return;
  cpu->watched = watched;
  heddle_blocks_forget(&cpu->blocks);
}

// Runs the loaded thread until something stops it. The counts of the run are in
// instructions and cycles.
enum heddle_stop heddle_cpu_run(struct heddle_cpu *cpu, uint64_t instructions, uint64_t most, uint64_t cycles,
                                uint32_t flags) {
  cpu->most = most < INT64_MAX ? (int64_t)most : INT64_MAX;
  cpu->instruction_limit = cpu->instructions_left = instructions < INT64_MAX ? (int64_t)instructions : INT64_MAX;
  cpu->cycle_limit = cpu->cycles_left = cycles < INT64_MAX ? (int64_t)cycles : INT64_MAX;
  watch(cpu, flags);
  cpu->run_flags = flags;
  cpu->passed = cpu->pass_sync = flags & HEDDLE_RUN_PASS;
  cpu->pass_at = 0;
  cpu->resume_end = 0;
  cpu->straight = 0;
  cpu->log.repeated = 0;
  cpu->ran = true;
  return run_on(cpu);
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
  return run_on(cpu);
}

int heddle_cpu_breakpoints(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  uint64_t *copy = malloc((n ? n : 1) * sizeof *copy);
  if (!copy) return -1;
  memcpy(copy, sorted, n * sizeof *copy);
  free(cpu->breakpoints);
  cpu->breakpoints = copy;
  cpu->nbreakpoints = n;
  heddle_blocks_broken(cpu);
  return 0;
}

// Gives instructions a hook, so that a run whose budget ends before one need not be
// stepped there. Only blocks that are translated later have it.
int heddle_cpu_points(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  if (cpu->ran || cpu->npoints) return UC_ERR_HOOK;
  cpu->points = malloc(n * sizeof *cpu->points);
  cpu->point_hooks = malloc(n * sizeof *cpu->point_hooks);
  if (!cpu->points || !cpu->point_hooks) return UC_ERR_NOMEM;
  memcpy(cpu->points, sorted, n * sizeof *cpu->points);
  for (size_t i = 0; i < n; i++) {
    int err = uc_hook_add(cpu->uc, &cpu->point_hooks[i], UC_HOOK_CODE, (void *)on_point, cpu, sorted[i], sorted[i]);
    if (err) return err;
  }
  cpu->npoints = n;
  return UC_ERR_OK;
}

// ---- setting up -------------------------------------------------------------

// What must be said before the engine sets itself up.
int heddle_cpu_reserve(uc_engine *uc) { return uc_ctl_set_tcg_buffer_size(uc, CODE_BUFFER); }

static int add_hook(struct heddle_cpu *cpu, int type, void *callback, int insn) {
  return uc_hook_add(cpu->uc, &cpu->hooks[cpu->nhooks++], type, callback, cpu, (uint64_t)1, (uint64_t)0, insn);
}

// Leaves privilege level 0: writing CS does not, so an IRETQ is executed once,
// with descriptors for user data and code where Linux has them.
static int enter_user_mode(struct heddle_cpu *cpu) {
  uint64_t page = heddle_ram_alloc(cpu->ram, true);
  if (page == HEDDLE_NO_PAGE) return UC_ERR_NOMEM;
  uint64_t base = WINDOW + (page << HEDDLE_PAGE_SHIFT);
  uint8_t *bytes = cpu->ram->base + (page << HEDDLE_PAGE_SHIFT);
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
  if ((err = add_hook(cpu, UC_HOOK_TLB_FILL, (void *)on_fill, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_BLOCK, (void *)on_block, 0))) return err;
  cpu->block_hook = &cpu->hooks[cpu->nhooks - 1];
  if ((err = add_hook(cpu, UC_HOOK_EDGE_GENERATED, (void *)on_translate, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INTR, (void *)on_interrupt, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INSN, (void *)on_syscall, UC_X86_INS_SYSCALL))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INSN, (void *)on_cpuid, UC_X86_INS_CPUID))) return err;
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

// Begins to call the block hook that logs or counts branches.
int heddle_cpu_count_branches(struct heddle_cpu *cpu) {
  cpu->log.counts = true;
  int err = uc_hook_del(cpu->uc, *cpu->block_hook);
  if (err) return err;
  void *hook = cpu->memory.on ? (void *)on_block_remembered : (void *)on_block_logged;
  return uc_hook_add(cpu->uc, cpu->block_hook, UC_HOOK_BLOCK, hook, cpu, (uint64_t)1, (uint64_t)0);
}

// Empties the logs, which the caller has read.
void heddle_cpu_drained(struct heddle_cpu *cpu) { cpu->log.nwords = cpu->log.ncode = cpu->log.nbytes = 0; }

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
