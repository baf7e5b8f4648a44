// The x87 instructions whose results C computes: the transcendental ones, FPREM, FPREM1, FSCALE and
// FXTRACT.
#ifndef HEDDLE_FLOATS_X87_H
#define HEDDLE_FLOATS_X87_H

#include <stdbool.h>
#include <stdint.h>

// The first part of an FXSAVE image (SDM volume 1, table 10-2): registers by their place on the stack.
struct heddle_x87 {
  uint16_t fcw, fsw;
  uint8_t ftw, reserved;
  uint16_t fop;
  uint64_t fip, fdp;
  uint32_t mxcsr, mxcsr_mask;
  uint8_t st[8][16];
};

// Reports whether the instruction D9 modrm is one of them.
bool heddle_x87_has(uint8_t modrm);

// Executes the instruction D9 modrm. Returns false if an exception of an earlier instruction is
// pending, which is to be raised instead (#MF).
bool heddle_x87_execute(struct heddle_x87 *state, uint8_t modrm);

#endif
