// Questions about the instruction that the loaded thread is about to execute, while no run is in
// progress.
#include "engine.h"
#include "float.h"
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

// The element k of n bytes of a vector register of the loaded thread, with its sign.
static int64_t element(const struct direct_engine *e, ZydisRegister r, unsigned k, unsigned n) {
  const struct direct_float *f = (const struct direct_float *)e->thread->state;
  int64_t value = 0;
  int id = ZydisRegisterGetId(r);
  unsigned at = k * n;
  copy_bytes(&value, at < 16 ? &f->xmm[id][at] : &f->ymm_high[id][at - 16], n);
  return n == 4 ? (int32_t)value : value;
}

// The elements that a gathering load is about to access.
static size_t gathered(const struct direct_engine *e, const struct heddle_insn *i, const ZydisDecodedOperand *o,
                       struct heddle_operand *out) {
  const ZydisDecodedOperand *to = &i->ops[0], *mask = &i->ops[2];
  unsigned size = i->in.raw.vex.W ? 8 : 4, index_size = i->in.opcode & 1 ? 8 : 4;
  unsigned most = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, to->reg.value) / 8 / size;
  unsigned indices = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o->mem.index) / 8 / index_size;
  size_t n = 0;
  for (unsigned k = 0; k < most && k < indices; k++) {
    if (element(e, mask->reg.value, k, size) >= 0) continue;
    uint64_t at = heddle_gathered_address(i, o, (uint64_t)element(e, o->mem.index, k, index_size));
    out[n++] = (struct heddle_operand){at, size, 0};
  }
  return n;
}

// The elements of an operand that the mask in a vector register selects.
static size_t selected(const struct direct_engine *e, const struct heddle_insn *i, struct heddle_operand *out) {
  unsigned size = i->in.mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD || i->in.mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ ? 8 : 4;
  struct heddle_operand all[HEDDLE_OPERANDS];
  size_t n = 0;
  if (!heddle_insn_operands(i, all)) return 0;
  for (unsigned k = 0; k < all[0].size / size; k++)
    if (element(e, i->ops[1].reg.value, k, size) < 0) out[n++] = (struct heddle_operand){all[0].at + k * size, size, all[0].writes};
  return n;
}

size_t direct_operands(struct direct_engine *e, struct heddle_operand *out) {
  struct heddle_regs regs;
  struct heddle_insn i;
  if (!direct_decode_next(e, e->thread->rip, &regs, &i)) return 0;
  const ZydisDecodedOperand *o = heddle_gathered_operand(&i);
  bool vex = i.in.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
  if (o) return vex ? gathered(e, &i, o, out) : 0;
  return heddle_is_masked(&i.in) ? selected(e, &i, out) : heddle_insn_operands(&i, out);
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
