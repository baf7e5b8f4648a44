#include "log.h"

#include <stdlib.h>

#include "cpu.h"

int heddle_log_start(struct heddle_cpu *cpu, bool timed) {
  struct heddle_log *log = &cpu->logs.flow;
  if (!log->words) log->words = malloc(HEDDLE_LOG_WORDS * sizeof *log->words);
  if (!log->words) return -1;
  log->on = log->counts = true;
  log->timed = timed;
  cpu->run.outcomes_full = (uint64_t)1 << (timed ? HEDDLE_LOG_MOST_TIMED : HEDDLE_LOG_MOST);
  return 0;
}

void heddle_log_close(struct heddle_log *log) {
  free(log->words);
  free(log->code);
  free(log->bytes);
}

// A full log makes the next block take the slow path, which stops there.
static void add_word(struct heddle_cpu *cpu, uint64_t tag, uint64_t payload) {
  cpu->logs.flow.words[cpu->logs.flow.nwords++] = tag << HEDDLE_LOG_TAG_SHIFT | payload;
  if (heddle_log_full(&cpu->logs.flow)) cpu->run.tag = HEDDLE_NO_TAG;
}

static void add_time(struct heddle_cpu *cpu) {
  if (cpu->logs.flow.timed) add_word(cpu, HEDDLE_LOG_TIME, heddle_cpu_cycles_now(cpu));
}

// Returns the number of outcomes that are not in a word of the log yet.
unsigned heddle_log_outcomes(const struct heddle_cpu *cpu) { return 63 - (unsigned)__builtin_clzll(cpu->run.outcomes); }

// Logs the outcomes that are not in a word yet.
void heddle_log_flush(struct heddle_cpu *cpu) {
  uint64_t n = heddle_log_outcomes(cpu), bits = cpu->run.outcomes ^ (uint64_t)1 << n;
  if (!n) return;
  cpu->logs.flow.branches += n;
  cpu->run.outcomes = 1;
  if (!cpu->logs.flow.on) return;
  add_time(cpu);
  add_word(cpu, HEDDLE_LOG_TNT, n << 48 | bits);
}

// Returns the number of branches in all runs.
uint64_t heddle_cpu_branches_now(const struct heddle_cpu *cpu) { return cpu->logs.flow.branches + heddle_log_outcomes(cpu); }

static void add_target(struct heddle_cpu *cpu, uint64_t tag, uint64_t pc) {
  heddle_log_flush(cpu);
  add_time(cpu);
  add_word(cpu, tag, pc);
}

// Logs the branch from a block's last instruction, which ends at end, to pc.
void heddle_log_branch(struct heddle_cpu *cpu, enum heddle_kind kind, uint64_t end, uint64_t pc) {
  struct heddle_log *log = &cpu->logs.flow;
  log->branches += kind == HEDDLE_KIND_JUMP || kind == HEDDLE_KIND_CALL_IND || kind == HEDDLE_KIND_RET;
  if (!log->on && kind != HEDDLE_KIND_COND) {
    log->repeated += kind == HEDDLE_KIND_REP && pc != end;
    return;
  }
  switch (kind) {
    case HEDDLE_KIND_NONE:
      return;
    case HEDDLE_KIND_COND:
      cpu->run.outcomes = cpu->run.outcomes << 1 | (pc != end);
      if (cpu->run.outcomes >= cpu->run.outcomes_full) heddle_log_flush(cpu);
      return;
    case HEDDLE_KIND_REP:
      log->repeated += pc != end;
      return;
    case HEDDLE_KIND_CALL:  // a call of the next instruction has no return
      if (pc == end) return;
      heddle_log_flush(cpu);
      add_word(cpu, HEDDLE_LOG_CALL, end);
      return;
    case HEDDLE_KIND_CALL_IND:
      heddle_log_flush(cpu);
      add_word(cpu, HEDDLE_LOG_CALL, end);
      add_target(cpu, HEDDLE_LOG_TIP, pc);
      return;
    case HEDDLE_KIND_JUMP:
      add_target(cpu, HEDDLE_LOG_TIP, pc);
      return;
    case HEDDLE_KIND_RET:
      add_target(cpu, HEDDLE_LOG_RET, pc);
      return;
  }
}

// Reports whether the block at pc is an instruction of the previous block, retried on its own, and
// corrects the logs and counts if so. The engine leaves a block that an instruction in it changes
// before that instruction, and retries the instruction alone; the previous block was counted as a
// whole. Except for PAUSE, only such a retry is a block of one instruction from the middle of the
// previous block.
bool heddle_log_retry(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  uint64_t start = heddle_block_pc(cpu->run.last_block);
  if (pc < start || pc + size >= heddle_block_end(cpu->run.last_block)) return false;
  ZydisDecodedInstruction in;
  if (!heddle_decode(cpu, pc, &in) || in.length != size || heddle_is_pause(&in)) return false;
  cpu->logs.flow.repeated += heddle_block_count(cpu->run.last_block) - heddle_measure_block(cpu, start, pc).count;
  heddle_insns_retract(cpu, pc);
  return true;
}

// Makes room for need more elements of size bytes each.
static void *make_room(void *p, size_t used, size_t need, size_t *room, size_t size) {
  if (used + need <= *room) return p;
  *room = 2 * (used + need);
  p = realloc(p, *room * size);
  if (!p) abort();
  return p;
}

// Logs the bytes of code that is about to run.
void heddle_log_code(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  struct heddle_log *log = &cpu->logs.flow;
  log->code = make_room(log->code, log->ncode, 1, &log->code_room, sizeof *log->code);
  log->bytes = make_room(log->bytes, log->nbytes, size, &log->bytes_room, 1);
  size_t n = heddle_space_code(cpu->space, pc, log->bytes + log->nbytes, size);
  uint64_t at = heddle_cpu_instructions_now(cpu) - log->repeated;
  log->code[log->ncode++] = (struct heddle_code_entry){pc, at, (uint32_t)n, (uint32_t)log->nbytes};
  log->nbytes += n;
}
