// What private pages need of the engine.
#include "run.h"

#include <stdlib.h>

static uint64_t instructions(void *engine) { return heddle_cpu_instructions_now(engine); }

// The next start of the engine drops its translations.
static void flush(void *engine, bool now) {
  struct heddle_cpu *cpu = engine;
  cpu->engine.cached_space = NULL;
  if (now) uc_ctl_flush_tlb(cpu->engine.uc);
}

static bool is_alone(void *engine) { return is_stepping(engine); }

static void isolate(void *engine) {
  struct heddle_cpu *cpu = engine;
  if (!cpu->run.rest_end) keep_rest(cpu, get_rip(cpu) + 1, false);
}

static bool find_store(void *engine, uint64_t pc, uint64_t *at, uint32_t *size) {
  struct heddle_regs regs;
  struct heddle_insn in;
  return heddle_cpu_decode_at(engine, pc, &regs, &in) && heddle_insn_store(&in, at, size);
}

static const struct heddle_private_functions functions = {
    .instructions = instructions, .flush = flush, .is_alone = is_alone, .find_store = find_store, .isolate = isolate};

// Starts to give cores private pages. Nothing may have run yet.
int heddle_cpu_open_private(struct heddle_cpu *cpu) {
  if (cpu->engine.has_run || cpu->private_pages || cpu->buffers || cpu->logs.memory.core.on) return UC_ERR_ARG;
  cpu->private_pages = calloc(1, sizeof *cpu->private_pages);
  bool ready = cpu->private_pages &&
      heddle_private_init(cpu->private_pages, &functions, cpu, cpu->ram, &cpu->space, &cpu->clock, cpu->cores);
  return ready ? 0 : UC_ERR_NOMEM;
}

void heddle_cpu_close_private(struct heddle_cpu *cpu) {
  if (!cpu->private_pages) return;
  heddle_private_free(cpu->private_pages);
  free(cpu->private_pages);
  cpu->private_pages = NULL;
}
