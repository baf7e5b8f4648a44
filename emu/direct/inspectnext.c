// Questions about the instruction that the loaded thread is about to execute, while no run is in
// progress.
#include "engine.h"
#include "operands.h"

_Static_assert(offsetof(struct direct_thread, rip) == offsetof(struct heddle_regs, rip) &&
                   offsetof(struct direct_thread, gs_base) == offsetof(struct heddle_regs, gs_base),
               "a thread begins with its registers");

// Copies the code at pc as far as it is mapped executable, without any effect on the pages.
static size_t read_code(const struct direct_engine *e, uint64_t pc, uint8_t *out, size_t n) {
  size_t done = 0;
  while (done < n && pc + done < HEDDLE_USER_END) {
    uint64_t at = pc + done, pte = heddle_space_get(e->space, at);
    size_t part = HEDDLE_PAGE_SIZE - offset_of(at);
    if (!(pte & HEDDLE_PTE_EXEC)) break;
    if (part > n - done) part = n - done;
    copy_bytes(out + done, heddle_ram_bytes(e->ram, pte >> HEDDLE_PAGE_SHIFT) + offset_of(at), part);
    done += part;
  }
  return done;
}

// Decodes the instruction at pc with the loaded thread's registers, which regs receives.
bool direct_decode_next(struct direct_engine *e, uint64_t pc, struct heddle_regs *regs, struct heddle_insn *out) {
  uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
  copy_bytes(regs, e->thread, sizeof *regs);
  regs->rip = pc;
  return heddle_insn_decode(code, read_code(e, pc, code, sizeof code), regs, out);
}

size_t direct_operands(struct direct_engine *e, struct heddle_operand *out) {
  struct heddle_regs regs;
  struct heddle_insn i;
  return direct_decode_next(e, e->thread->rip, &regs, &i) ? heddle_insn_operands(&i, out) : 0;
}

// Reports whether the next instruction is a repeated one without iterations left.
bool direct_repetition_over(struct direct_engine *e) {
  struct heddle_regs regs;
  struct heddle_insn i;
  return direct_decode_next(e, e->thread->rip, &regs, &i) && heddle_is_repeated(&i.in) && !heddle_rep_count(&i.in, regs.gpr[RCX]);
}

uint32_t direct_order_at(struct direct_engine *e, uint64_t pc) {
  struct heddle_regs regs;
  struct heddle_insn i;
  return direct_decode_next(e, pc, &regs, &i) ? heddle_order_of(&i.in) : 0;
}
