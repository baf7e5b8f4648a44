// Execution of single instructions, where a run must end within a block or something must be done
// between two instructions.
#include "run.h"

#include "sse.h"
#include "special.h"

#define FLAG_ZF 0x40u
#define FLAG_TF 0x100u

// Executes RDTSC or RDTSCP in virtual time.
static void emulate_tsc(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t run = cpu->tsc_instructions ? heddle_cpu_instructions_now(cpu) : heddle_cpu_cycles_now(cpu);
  uint64_t tsc = (uint64_t)((unsigned __int128)(cpu->clock + run) * cpu->tsc_multiplier >> 10);
  set_reg(cpu, UC_X86_REG_RAX, (uint32_t)tsc);
  set_reg(cpu, UC_X86_REG_RDX, tsc >> 32);
  if (in->mnemonic == ZYDIS_MNEMONIC_RDTSCP) set_reg(cpu, UC_X86_REG_RCX, cpu->core);
}

// Executes one instruction with the trap flag, which the guest must not see. SYSCALL stops by
// itself, and its hook must be the last to act.
static enum heddle_stop trap_step(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t flags = get_reg(cpu, UC_X86_REG_RFLAGS);
  bool own = !(flags & FLAG_TF) && in->mnemonic != ZYDIS_MNEMONIC_SYSCALL;
  if (own) set_reg(cpu, UC_X86_REG_RFLAGS, flags | FLAG_TF);
  cpu->run.state = HEDDLE_STATE_STEP;
  enum heddle_stop why;
  uc_err err;
  do {
    err = heddle_start_engine(cpu);
    why = err ? heddle_handle_failure(cpu, err) : HEDDLE_STOP_NONE;
  } while (err && !why);
  bool debug = !err && cpu->run.stop == HEDDLE_STOP_EXCEPTION && cpu->run.vector == VECTOR_DEBUG;
  if (err) cpu->run.stop = why;
  else if (debug) why = HEDDLE_STOP_NONE;
  else if (cpu->run.stop == HEDDLE_STOP_EXCEPTION)
    why = heddle_handle_exception(cpu, in->meta.category == ZYDIS_CATEGORY_INTERRUPT);
  else why = cpu->run.stop;
  cpu->run.state = HEDDLE_STATE_BLOCKS;
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
    cpu->run.instructions_left--;
    cpu->run.cycles_left -= heddle_cost(cpu, in, &unused);
  }
  return why;
}

// Logs the branch of an instruction that was stepped.
static void log_step(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  uint64_t end = pc + in->length, rip = get_rip(cpu);
  enum heddle_kind kind = heddle_kind_of(in);
  cpu->run.fallthrough_pc = kind == HEDDLE_KIND_NONE && rip == end ? rip : 0;
  if (cpu->logs.flow.counts) heddle_log_branch(cpu, kind, end, rip);
}

// Reports whether a comparison has ended the repetition.
static bool rep_ended_by_flag(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  bool equal = get_reg(cpu, UC_X86_REG_RFLAGS) & FLAG_ZF;
  return (in->attributes & ZYDIS_ATTRIB_HAS_REPE) ? !equal : (in->attributes & ZYDIS_ATTRIB_HAS_REPNE) && equal;
}

// Executes one iteration with the trap flag. Without that flag the engine returns to the
// instruction once more when the count has reached zero, and so must this function, or counts and
// stops would depend on which instructions are stepped.
static enum heddle_stop rep_step(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  bool iterates = heddle_rep_count(in, get_reg(cpu, UC_X86_REG_RCX)) != 0;
  enum heddle_stop why = trap_step(cpu, in);
  if (!why && iterates && !heddle_rep_count(in, get_reg(cpu, UC_X86_REG_RCX)) && !rep_ended_by_flag(cpu, in)) set_reg(cpu, UC_X86_REG_RIP, pc);
  return why;
}

// C has executed the instruction at pc: counts and logs it.
static enum heddle_stop finish_alone(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in,
                                     enum heddle_stop why) {
  if (cpu->logs.flow.on) heddle_log_code(cpu, pc, in->length);
  heddle_insns_add(cpu, pc);
  uint8_t unused = 0;
  cpu->run.instructions_left--;
  cpu->run.cycles_left -= heddle_cost(cpu, in, &unused);
  log_step(cpu, pc, in);
  if (!why && (get_reg(cpu, UC_X86_REG_RFLAGS) & FLAG_TF)) {
    cpu->run.vector = VECTOR_DEBUG;
    return HEDDLE_STOP_EXCEPTION;
  }
  return why;
}

// Executes RDTSC, RDTSCP or PAUSE: for the first two the engine reads the host's clock, and after
// PAUSE it executes the next instruction before it stops.
static enum heddle_stop emulate_alone(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  bool pauses = heddle_is_pause(in);
  if (!pauses) emulate_tsc(cpu, in);
  set_reg(cpu, UC_X86_REG_RIP, pc + in->length);
  enum heddle_stop why = finish_alone(cpu, pc, in, HEDDLE_STOP_NONE);
  return !why && pauses && heddle_pause_ends_run(cpu) ? HEDDLE_STOP_PAUSE : why;
}

// Reports whether the instruction may change EFLAGS.AC.
static bool sets_alignment_check(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_POPFQ || in->mnemonic == ZYDIS_MNEMONIC_POPF ||
         in->mnemonic == ZYDIS_MNEMONIC_IRETQ || in->mnemonic == ZYDIS_MNEMONIC_IRETD || in->mnemonic == ZYDIS_MNEMONIC_IRET;
}

// Executes the instruction at pc alone.
static enum heddle_stop step_alone(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in;
  if (heddle_decode_next(cpu, pc, &in) == HEDDLE_DECODED_INVALID) {
    cpu->run.vector = VECTOR_INVALID_OPCODE;
    return HEDDLE_STOP_EXCEPTION;
  }
  if (in.mnemonic == ZYDIS_MNEMONIC_RDTSC || in.mnemonic == ZYDIS_MNEMONIC_RDTSCP || heddle_is_pause(&in))
    return emulate_alone(cpu, pc, &in);
  if (in.meta.category == ZYDIS_CATEGORY_IO || in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP) {
    // Linux gives no process access to ports; the engine would.
    cpu->run.vector = VECTOR_PROTECTION;
    return HEDDLE_STOP_EXCEPTION;
  }
  if (heddle_special_misaligned(cpu, pc)) {
    cpu->run.vector = VECTOR_ALIGNMENT;
    return HEDDLE_STOP_EXCEPTION;
  }
  enum heddle_special special = heddle_special_of(&in);
  struct heddle_before before = {0};
  enum heddle_stop why;
  if (special == HEDDLE_SPECIAL_EMULATED) {
    why = heddle_special_emulate(cpu, pc, &in);
    if (why && why != HEDDLE_STOP_INTERRUPT) return why;
    why = finish_alone(cpu, pc, &in, why);
    if (sets_alignment_check(&in)) heddle_special_note_flags(cpu);
    return why;
  }
  struct heddle_shown shown = {0};
  bool shows = heddle_sse_special(&in);
  if (shows && !heddle_sse_before(cpu, pc, &in, &shown)) {
    cpu->run.vector = VECTOR_PROTECTION;
    return HEDDLE_STOP_EXCEPTION;
  }
  if (special && (why = heddle_special_before(cpu, pc, &in, &before))) return why;
  if (cpu->logs.flow.on) heddle_log_code(cpu, pc, in.length);
  bool atomic = heddle_atomic_begin(cpu, pc, &in);
  uint32_t order = heddle_order_of(&in);
  if (cpu->private_pages) heddle_private_alone(cpu->private_pages, pc, order, heddle_touches_memory(&in));
  bool buffers = cpu->buffers && order;
  if (buffers) heddle_buffers_before(cpu->buffers, order);
  uint64_t lengths[2];
  bool shortened = heddle_sse_replace_lengths(cpu, &in, lengths);
  why = heddle_kind_of(&in) == HEDDLE_KIND_REP ? rep_step(cpu, pc, &in) : trap_step(cpu, &in);
  if (shortened) heddle_sse_restore_lengths(cpu, lengths);
  if (special && !why) heddle_special_correct(cpu, &in, &before);
  if (atomic) heddle_atomic_end(cpu, !why);
  if (buffers) heddle_buffers_after(cpu->buffers, order);
  if (why == HEDDLE_STOP_NONE) {
    log_step(cpu, pc, &in);
    if (shows) heddle_sse_after(cpu, &in, &shown);
  }
  if (sets_alignment_check(&in)) heddle_special_note_flags(cpu);
  return why;
}

// step_alone for an instruction that the thread is inside.
enum heddle_stop heddle_step_instruction(struct heddle_cpu *cpu, uint64_t pc) { return step_alone(cpu, pc); }

// Reports whether RUN_SYNC stops before the instruction at pc.
static bool is_sync_at(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in;
  uint8_t flags = 0;
  if (!heddle_decode(cpu, pc, &in)) return false;
  heddle_cost(cpu, &in, &flags);
  return flags & HEDDLE_BLOCK_SYNC;
}

static bool is_repeated_at(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in;
  return heddle_decode(cpu, pc, &in) && heddle_kind_of(&in) == HEDDLE_KIND_REP;
}

// Ends the pass of the run's first instruction, which was at pc and was executed. A repeated string
// instruction is passed with all its iterations.
void heddle_pass_end(struct heddle_cpu *cpu, uint64_t pc) {
  if (get_rip(cpu) != pc || !is_repeated_at(cpu, pc)) cpu->run.pass = HEDDLE_PASS_NOTHING;
}

// Steps from the PC to the end of its block and examines breakpoints and budgets before each
// instruction. Breakpoints must not move the end of a run: without EXACT, budgets are examined only
// at the start of a block, which was done. A repeated string instruction is a block of its own from
// its second iteration on.
enum heddle_stop heddle_step_block(struct heddle_cpu *cpu, uint64_t from, uint64_t end) {
  uint64_t pc = from, last, start = cpu->run.step_from;
  do {
    enum heddle_stop inside = heddle_inside_end(&cpu->inside, pc);
    if (inside == HEDDLE_STOP_FAULT || inside == HEDDLE_STOP_NO_MEMORY) keep_rest(cpu, end, true);
    if (inside) return inside;
    if (is_at_exact_end(cpu)) return HEDDLE_STOP_BUDGET;
    enum heddle_stop why = is_halt_reached(cpu) ? HEDDLE_STOP_BREAKPOINT : HEDDLE_STOP_NONE;
    if (!why && cpu->run.pass == HEDDLE_PASS_NOTHING && heddle_has_breakpoint(cpu, pc, pc + 1))
      why = HEDDLE_STOP_BREAKPOINT;
    if (!why && heddle_atomic_check_gate(cpu, pc)) why = HEDDLE_STOP_BREAKPOINT;
    if (!why && cpu->run.pass != HEDDLE_PASS_ALL && (cpu->run.flags & HEDDLE_RUN_SYNC) && is_sync_at(cpu, pc))
      why = HEDDLE_STOP_SYNC;
    int64_t before = cpu->run.instructions_left;
    if (!why) why = step_alone(cpu, pc);
    last = pc;
    pc = get_rip(cpu);
    if (cpu->run.instructions_left != before) heddle_pass_end(cpu, last);
    bool resumes = why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY || why == HEDDLE_STOP_BREAKPOINT;
    if (resumes && !(why == HEDDLE_STOP_BREAKPOINT && pc == start)) keep_rest(cpu, end, true);
    if (why) return why;
  } while (pc > last && pc < end);
  return HEDDLE_STOP_NONE;
}

// Executes the rest of a block that a fault interrupted as if there had been no fault: where blocks
// end, and so where budgets are examined, must not depend on which pages were present.
enum heddle_stop heddle_finish_block(struct heddle_cpu *cpu) {
  uint64_t end = cpu->run.rest_end, pc = get_rip(cpu), last;
  cpu->run.rest_end = 0;
  if (cpu->run.rest_checked) return heddle_step_block(cpu, pc, end);
  do {
    last = pc;
    enum heddle_stop why = is_halt_reached(cpu) ? HEDDLE_STOP_BREAKPOINT : step_alone(cpu, pc);
    pc = get_rip(cpu);
    if (why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY || why == HEDDLE_STOP_BREAKPOINT)
      keep_rest(cpu, end, false);
    if (why) return why;
  } while (pc > last && pc < end);
  return HEDDLE_STOP_NONE;
}
