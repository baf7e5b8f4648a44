// Instructions whose results the manuals bound but do not define: RCPPS, RSQRTPS and their kin.
// They give the same bits on every host here: the quotient, rounded to nearest. The guest's
// floating-point state is in its thread, not in the host's registers.
#include "float.h"

#include <math.h>
#include <string.h>

#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
#define QUIET 0x400000u
#define MINIMUM_NORMAL 0x00800000u

static float float_from(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint32_t bits_from(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static bool is_nan(uint32_t x) { return (x & ~SIGN) > INFINITE; }

// Denormal operands count as zeros, denormal results are zeros.
static uint32_t reciprocal(uint32_t x) {
  if (is_nan(x)) return x | QUIET;
  if ((x & ~SIGN) < MINIMUM_NORMAL) return (x & SIGN) | INFINITE;
  if ((x & ~SIGN) == INFINITE) return x & SIGN;
  uint32_t r = bits_from((float)(1.0 / (double)float_from(x)));
  return (r & ~SIGN) < MINIMUM_NORMAL ? x & SIGN : r;
}

static uint32_t reciprocal_root(uint32_t x) {
  if (is_nan(x)) return x | QUIET;
  if ((x & ~SIGN) < MINIMUM_NORMAL) return (x & SIGN) | INFINITE;
  if (x & SIGN) return SIGN | INFINITE | QUIET;
  if (x == INFINITE) return 0;
  return bits_from((float)(1.0 / sqrt((double)float_from(x))));
}

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
  for (unsigned i = 0; i < n; i++) values[i] = root ? reciprocal_root(values[i]) : reciprocal(values[i]);
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
