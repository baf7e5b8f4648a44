// The layout of x87, SSE and AVX state in memory.
#ifndef HEDDLE_DIRECT_FLOAT_H
#define HEDDLE_DIRECT_FLOAT_H

#include "engine.h"

// The image of FXSAVE and XSAVE (SDM volume 1, table 10-2 and section 13.4).
struct direct_float {
  uint16_t fcw, fsw;
  uint8_t ftw, reserved;
  uint16_t fop;
  uint64_t fip, fdp;
  uint32_t mxcsr, mxcsr_mask;
  uint8_t st[8][16];
  uint8_t xmm[16][16];
  uint8_t rest[96];
  uint64_t xstate_bv, xcomp_bv, header[6];
  uint8_t ymm_high[16][16];
};
_Static_assert(offsetof(struct direct_float, xmm) == 160, "FXSAVE image");
_Static_assert(offsetof(struct direct_float, xstate_bv) == 512, "XSAVE image");
_Static_assert(offsetof(struct direct_float, ymm_high) == 576, "XSAVE image");
_Static_assert(sizeof(struct direct_float) == 832 && sizeof(struct direct_float) <= THREAD_FLOAT_BYTES, "XSAVE image");

#define FLOAT_LEGACY_BYTES 512u
#define STATE_X87 1u
#define STATE_SSE 2u
#define STATE_AVX 4u
#define STATE_ALL 7u
#define MXCSR_MASK 0xffffu
#define MXCSR_START 0x1f80u
#define FCW_START 0x37fu

static inline struct direct_float *float_of(struct direct_engine *e) { return (struct direct_float *)e->thread->state; }

#endif
