#include "accesses.h"

static void on_access(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *user) {
  (void)uc;
  (void)value;
  struct heddle_access_log *log = user;
  uint64_t at = log->count++;
  if (at < HEDDLE_ACCESSES)
    log->entries[at] = (struct heddle_access_entry){address, (uint32_t)size, type == UC_MEM_WRITE};
}

int heddle_access_log_open(struct heddle_access_log *log, struct heddle_cpu *cpu) {
  log->cpu = cpu;
  int err = uc_hook_add(cpu->engine.uc, &log->hooks[0], UC_HOOK_MEM_READ, (void *)on_access, log, (uint64_t)1,
                        (uint64_t)0);
  if (err) return err;
  return uc_hook_add(cpu->engine.uc, &log->hooks[1], UC_HOOK_MEM_WRITE, (void *)on_access, log, (uint64_t)1,
                     (uint64_t)0);
}

void heddle_access_log_close(struct heddle_access_log *log) {
  for (int i = 0; i < 2; i++)
    if (log->hooks[i]) uc_hook_del(log->cpu->engine.uc, log->hooks[i]);
}

uint32_t heddle_order_at(struct heddle_cpu *cpu, uint64_t pc) {
  uint8_t code[15];
  ZydisDecodedInstruction in;
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&cpu->decoder, NULL, code, len, &in))) return 0;
  return heddle_order_of(&in);
}
