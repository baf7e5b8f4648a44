#include "insnlog.h"

#include <stdlib.h>

#include "cpu.h"

static bool is_repeated_at(struct heddle_cpu *cpu, uint64_t pc) {
  ZydisDecodedInstruction in;
  return heddle_decode(cpu, pc, &in) && heddle_kind_of(&in) == HEDDLE_KIND_REP;
}

// Adds the instruction at pc, which is about to run.
void heddle_insns_add(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_insn_log *log = &cpu->logs.instructions;
  if (!log->on) return;
  if (log->n && log->pcs[log->n - 1] == pc && is_repeated_at(cpu, pc)) return;
  if (log->n == log->room) {
    log->room = log->room ? 2 * log->room : 1u << 16;
    log->pcs = realloc(log->pcs, log->room * sizeof *log->pcs);
    if (!log->pcs) abort();
  }
  log->pcs[log->n++] = pc;
}

// Removes the instruction at pc, the last one, which was interrupted and is about to run again.
void heddle_insns_retract(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_insn_log *log = &cpu->logs.instructions;
  if (log->n && log->pcs[log->n - 1] == pc) log->n--;
}

static void on_instruction(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc, (void)size;
  heddle_insns_add(user, pc);
}

int heddle_insns_start(struct heddle_cpu *cpu) {
  if (cpu->engine.has_run) return UC_ERR_HOOK;
  cpu->logs.instructions.on = true;
  return uc_hook_add(cpu->engine.uc, &cpu->engine.hooks[cpu->engine.nhooks++], UC_HOOK_CODE, (void *)on_instruction,
                     cpu, (uint64_t)1, (uint64_t)0);
}

void heddle_insns_empty(struct heddle_cpu *cpu) { cpu->logs.instructions.n = 0; }

void heddle_insns_close(struct heddle_insn_log *log) { free(log->pcs); }
