// RCPPS, RSQRTPS and their kin. The guest's floating-point state is in its thread, not in the
// host's registers.
#include "float.h"

#include <string.h>

#include "approximate.h"

enum direct_stop direct_approximate(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_float *f = float_of(e);
  bool root = in->opcode == 0x52, scalar = in->vex ? in->pp == 2 : in->repeat == 0xf3;
  unsigned n = scalar ? 1 : in->l ? 8 : 4, to = insn_reg(in);
  uint32_t values[8] = {0};
  if (insn_is_register(in)) {
    memcpy(values, f->xmm[insn_rm(in)], 16);
    memcpy(values + 4, f->ymm_high[insn_rm(in)], 16);
  } else {
    uint64_t va = direct_address_of(e, in);
    if (!direct_check_address(e, in, va, in->size)) return STOP_EXCEPTION;
    if (!direct_read(e, va, values, in->size)) return direct_fault(e);
  }
  for (unsigned i = 0; i < n; i++) values[i] = root ? heddle_reciprocal_root(values[i]) : heddle_reciprocal(values[i]);
  if (scalar) {
    if (in->vex) memcpy(f->xmm[to], f->xmm[in->vvvv], 16);
    memcpy(f->xmm[to], values, 4);
  } else {
    memcpy(f->xmm[to], values, 16);
  }
  if (!in->vex) return STOP_NONE;
  if (!scalar && in->l) memcpy(f->ymm_high[to], values + 4, 16);
  else memset(f->ymm_high[to], 0, 16);
  return STOP_NONE;
}
