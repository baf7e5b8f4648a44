// Logs of runs: branches, and code that is executed for the first time. log.go describes the
// layout.
#ifndef HEDDLE_LOG_H
#define HEDDLE_LOG_H

#include "block.h"

#define HEDDLE_LOG_TNT 1u   // n << 48 | outcomes; the first outcome is the highest bit
#define HEDDLE_LOG_TIP 2u   // target of an indirect jump or call
#define HEDDLE_LOG_CALL 3u  // return address of a call
#define HEDDLE_LOG_RET 4u   // target of a return
#define HEDDLE_LOG_TIME 5u  // cycles of the run so far
#define HEDDLE_LOG_TAG_SHIFT 60

// Words of a log, and those left free when a run stops for a full log: a block that is stepped
// through logs at most two words for each instruction, and a run stops only at the start of a
// block.
#define HEDDLE_LOG_WORDS (1u << 16)
#define HEDDLE_LOG_SLACK 4096u
#define HEDDLE_LOG_MOST 47u        // outcomes in a word
#define HEDDLE_LOG_MOST_TIMED 6u   // outcomes in a word of a timed log

struct heddle_code_entry {
  uint64_t pc, at;  // at: instructions of the run before it; a repeated string instruction counts once
  uint32_t size, offset;  // of its bytes
};

struct heddle_log {
  bool on, timed;
  bool counts;        // branches and repetitions are counted, whether or not they are logged
  uint64_t branches;  // counted in all runs, without run.outcomes
  size_t nwords;
  uint64_t *words;
  // Iterations of repeated string instructions without the last of each, and the excess of the
  // counts of blocks that an instruction in them changed.
  uint64_t repeated;

  struct heddle_code_entry *code;
  size_t ncode, code_room;
  uint8_t *bytes;
  size_t nbytes, bytes_room;
};

static inline bool heddle_log_full(const struct heddle_log *log) {
  return log->nwords + HEDDLE_LOG_SLACK > HEDDLE_LOG_WORDS;
}

unsigned heddle_log_outcomes(const struct heddle_cpu *cpu);
uint64_t heddle_cpu_branches_now(const struct heddle_cpu *cpu);
int heddle_log_start(struct heddle_cpu *cpu, bool timed);
void heddle_log_close(struct heddle_log *log);
void heddle_log_flush(struct heddle_cpu *cpu);
void heddle_log_branch(struct heddle_cpu *cpu, enum heddle_kind kind, uint64_t end, uint64_t pc);
bool heddle_log_retry(struct heddle_cpu *cpu, uint64_t pc, uint32_t size);
void heddle_log_code(struct heddle_cpu *cpu, uint64_t pc, uint32_t size);

#endif
