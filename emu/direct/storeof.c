// The memory that an instruction is about to store to.
#include "general.h"

#include "engine.h"

// Reports whether the instruction stores to memory, as far as its operands say.
static bool is_store(const struct direct_insn *in) {
  switch ((enum direct_class)in->class) {
    case CLASS_NATIVE:
      return in->what & INSN_STORES;
    case CLASS_PUSH:
    case CLASS_CALL:
    case CLASS_CALL_TO:
    case CLASS_STRING:
    case CLASS_EMULATED:
      return true;
    default:
      return false;
  }
}

// Finds the memory that the instruction stores to. Returns false if its operands do not name it.
bool direct_find_store(struct direct_engine *e, const struct direct_insn *in, uint64_t *at, uint32_t *size) {
  struct heddle_regs regs;
  struct heddle_insn decoded;
  if (!is_store(in)) return false;
  direct_registers(e, &regs);
  regs.rip = in->pc;
  direct_float_park(e);
  return heddle_insn_decode(in->bytes, in->length, &regs, &decoded) && heddle_insn_store(&decoded, at, size);
}

// Reports whether the instruction may store to a page that the tables do not have. False negatives
// are impossible.
bool direct_needs_page(struct direct_engine *e, const struct direct_insn *in) {
  if (!is_store(in)) return false;
  if (in->class != CLASS_STRING) return true;
  uint64_t at = e->context->gpr[RDI];
  return offset_of(at) > HEDDLE_PAGE_SIZE - 8 || in->address == 4 || !direct_has_page(e, at, true);
}
