#include "encode.h"

// The ModRM byte, the SIB byte and the displacement.
void put_modrm(struct code *c, unsigned reg, struct place m) {
  unsigned r = (reg & 7) << 3;
  if (m.base == NO_REGISTER) {
    // With a SIB byte, or the displacement would be relative to the program counter.
    unsigned scale = m.scale == 8 ? 3 : m.scale == 4 ? 2 : m.scale == 2 ? 1 : 0;
    put8(c, r | 4);
    put8(c, scale << 6 | (m.index == NO_REGISTER ? 4u : m.index & 7u) << 3 | 5);
    put32(c, (uint32_t)m.disp);
    return;
  }
  unsigned mod = m.disp == 0 && (m.base & 7) != RBP ? 0 : m.disp >= -128 && m.disp < 128 ? 1 : 2;
  if (m.index != NO_REGISTER || (m.base & 7) == RSP) {
    unsigned scale = m.scale == 8 ? 3 : m.scale == 4 ? 2 : m.scale == 2 ? 1 : 0;
    put8(c, mod << 6 | r | 4);
    put8(c, scale << 6 | (m.index == NO_REGISTER ? 4u : m.index & 7u) << 3 | (m.base & 7u));
  } else {
    put8(c, mod << 6 | r | (m.base & 7u));
  }
  if (mod == 1) put8(c, (unsigned)m.disp);
  if (mod == 2) put32(c, (uint32_t)m.disp);
}

static unsigned extension(unsigned reg) { return reg != NO_REGISTER && reg >= 8; }

static void put_rex(struct code *c, unsigned w, unsigned reg, unsigned index, unsigned base, bool needed) {
  unsigned rex = w << 3 | extension(reg) << 2 | extension(index) << 1 | extension(base);
  if (rex || needed) put8(c, 0x40 | rex);
}

// An instruction with a one-byte opcode, of 1, 2, 4 or 8 bytes. The opcode is that of the wider form.
void put_op_memory(struct code *c, unsigned width, unsigned opcode, unsigned reg, struct place m) {
  if (m.gs) put8(c, 0x65);
  if (width == 2) put8(c, 0x66);
  put_rex(c, width == 8, reg, m.index, m.base, width == 1 && reg >= RSP && reg <= RDI);
  put8(c, width == 1 ? opcode & ~1u : opcode);
  put_modrm(c, reg, m);
}

void put_op_register(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned rm) {
  if (width == 2) put8(c, 0x66);
  put_rex(c, width == 8, reg, NO_REGISTER, rm, width == 1);
  put8(c, width == 1 ? opcode & ~1u : opcode);
  put8(c, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

static void put_immediate(struct code *c, unsigned width, int32_t imm) {
  if (width == 1) put8(c, (uint8_t)imm);
  else if (width == 2) put16(c, (uint16_t)imm);
  else put32(c, (uint32_t)imm);
}

// ADD (extension 0), OR, ADC, SBB, AND, SUB, XOR, CMP (7) of a register and a constant.
void put_op_imm(struct code *c, unsigned width, unsigned ext, unsigned rm, int32_t imm) {
  if (width == 2) put8(c, 0x66);
  put_rex(c, width == 8, 0, NO_REGISTER, rm, width == 1);
  bool small = imm >= -128 && imm < 128;
  put8(c, width == 1 ? 0x80 : small ? 0x83 : 0x81);
  put8(c, 0xc0 | ext << 3 | (rm & 7));
  if (small) put8(c, (uint8_t)imm);
  else put_immediate(c, width, imm);
}

void put_imm_to_memory(struct code *c, unsigned width, struct place m, int32_t imm) {
  if (m.gs) put8(c, 0x65);
  put_rex(c, width == 8, 0, m.index, m.base, false);
  put8(c, width == 1 ? 0xc6 : 0xc7);
  put_modrm(c, 0, m);
  if (width == 1) put8(c, (uint8_t)imm);
  else put32(c, (uint32_t)imm);
}

// Shifts by a constant: extension 4 is SHL, 5 SHR, 7 SAR.
void put_shift(struct code *c, unsigned width, unsigned ext, unsigned rm, unsigned count) {
  if (width == 2) put8(c, 0x66);
  put_rex(c, width == 8, 0, NO_REGISTER, rm, width == 1);
  put8(c, width == 1 ? 0xc0 : 0xc1);
  put8(c, 0xc0 | ext << 3 | (rm & 7));
  put8(c, count);
}

// NOT (extension 2) and NEG (3).
void put_unary(struct code *c, unsigned width, unsigned ext, unsigned rm) {
  if (width == 2) put8(c, 0x66);
  put_rex(c, width == 8, 0, NO_REGISTER, rm, width == 1);
  put8(c, width == 1 ? 0xf6 : 0xf7);
  put8(c, 0xc0 | ext << 3 | (rm & 7));
}

void put_test_imm(struct code *c, unsigned width, unsigned rm, int32_t imm) {
  put_unary(c, width, 0, rm);
  put_immediate(c, width, imm);
}

// Compares one byte or four with a small constant.
void put_compare_memory(struct code *c, unsigned width, struct place m, int8_t imm) {
  if (m.gs) put8(c, 0x65);
  put_rex(c, 0, 0, m.index, m.base, false);
  put8(c, width == 1 ? 0x80 : 0x83);
  put_modrm(c, 7, m);
  put8(c, (uint8_t)imm);
}

// Subtracts a constant from eight bytes.
void put_subtract_from_memory(struct code *c, struct place m, int32_t imm) {
  if (m.gs) put8(c, 0x65);
  put_rex(c, 1, 0, m.index, m.base, false);
  put8(c, 0x81);
  put_modrm(c, 5, m);
  put32(c, (uint32_t)imm);
}

// Subtracts 1 from two bytes, which are as far from the code where it is executed as at is from c.
void put_decrement16(struct code *c, const uint8_t *at) {
  put8(c, 0x66);
  put8(c, 0xff);
  put8(c, 0x0d);
  put32(c, (uint32_t)(at - (c->at + 4)));
}

void put_move_if(struct code *c, unsigned condition, unsigned to, unsigned from) {
  put_rex(c, 1, to, NO_REGISTER, from, false);
  put8(c, 0x0f);
  put8(c, 0x40 | condition);
  put8(c, 0xc0 | (to & 7) << 3 | (from & 7));
}

void put_zero_extend16(struct code *c, unsigned to, unsigned from) {
  put_rex(c, 0, to, NO_REGISTER, from, false);
  put8(c, 0x0f);
  put8(c, 0xb7);
  put8(c, 0xc0 | (to & 7) << 3 | (from & 7));
}

// Loads 1 or 2 bytes.
void put_zero_extend_memory(struct code *c, unsigned width, unsigned to, struct place m) {
  if (m.gs) put8(c, 0x65);
  put_rex(c, 0, to, m.index, m.base, false);
  put8(c, 0x0f);
  put8(c, width == 2 ? 0xb7 : 0xb6);
  put_modrm(c, to, m);
}

// Sets AL to OF.
void put_set_overflow(struct code *c) {
  put8(c, 0x0f);
  put8(c, 0x90);
  put8(c, 0xc0);
}

void put_jump_register(struct code *c, unsigned r) {
  put_rex(c, 0, 0, NO_REGISTER, r, false);
  put8(c, 0xff);
  put8(c, 0xe0 | (r & 7));
}

// Does not change the flags.
void put_constant(struct code *c, unsigned reg, uint64_t value) {
  if (value <= UINT32_MAX) {
    put_rex(c, 0, 0, NO_REGISTER, reg, false);
    put8(c, 0xb8 | (reg & 7));
    put32(c, (uint32_t)value);
  } else if ((int64_t)value == (int32_t)value) {
    put_rex(c, 1, 0, NO_REGISTER, reg, false);
    put8(c, 0xc7);
    put8(c, 0xc0 | (reg & 7));
    put32(c, (uint32_t)value);
  } else {
    put_rex(c, 1, 0, NO_REGISTER, reg, false);
    put8(c, 0xb8 | (reg & 7));
    put64(c, value);
  }
}

void put_jump_memory(struct code *c, struct place m) {
  if (m.gs) put8(c, 0x65);
  put_rex(c, 0, 0, m.index, m.base, false);
  put8(c, 0xff);
  put_modrm(c, 4, m);
}

// Jumps whose target patch_jump sets: the result is the field with it.
uint8_t *put_jump(struct code *c) {
  put8(c, 0xe9);
  put32(c, 0);
  return c->at - 4;
}

uint8_t *put_jump_if(struct code *c, unsigned condition) {
  put8(c, 0x0f);
  put8(c, 0x80 | condition);
  put32(c, 0);
  return c->at - 4;
}

void patch_jump(uint8_t *field, const uint8_t *target) {
  int32_t distance = (int32_t)(target - (field + 4));
  memcpy(field, &distance, 4);
}

// ---- the guest's instructions ---------------------------------------------------

static void put_vex(struct code *c, const struct direct_insn *in, unsigned r, unsigned x, unsigned b) {
  unsigned last = (15u - in->vvvv) << 3 | (unsigned)in->l << 2 | in->pp;
  if (!x && !b && !in->w && in->opcode_map == 1) {
    put8(c, 0xc5);
    put8(c, (r ? 0 : 0x80) | last);
    return;
  }
  put8(c, 0xc4);
  put8(c, (r ? 0u : 0x80u) | (x ? 0u : 0x40u) | (b ? 0u : 0x20u) | in->opcode_map);
  put8(c, (unsigned)in->w << 7 | last);
}

static void put_prefixes(struct code *c, const struct direct_insn *in, unsigned r, unsigned x, unsigned b) {
  if (in->operand16) put8(c, 0x66);
  if (in->repeat) put8(c, in->repeat);
  unsigned rex = (unsigned)in->w << 3 | r << 2 | x << 1 | b;
  if (rex || in->has_rex) put8(c, 0x40 | rex);
  if (in->opcode_map) put8(c, 0x0f);
  if (in->opcode_map == 2) put8(c, 0x38);
  if (in->opcode_map == 3) put8(c, 0x3a);
}

// The instruction with another operand in memory, if it has one, and with another register in
// the field of ModRM unless reg is negative. Prefixes without a meaning for the host are left
// out: LOCK, since no other thread has the guest's memory while it runs, segments and hints.
void put_insn(struct code *c, const struct direct_insn *in, struct place m, int reg) {
  bool memory = in->has_modrm && in->modrm < 0xc0;
  unsigned field = reg < 0 ? insn_reg(in) : (unsigned)reg;
  unsigned r = in->has_modrm ? field >> 3 : in->r;
  unsigned x = memory ? extension(m.index) : in->x, b = memory ? extension(m.base) : in->b;
  if (memory && m.gs) put8(c, 0x65);
  if ((in->what & INSN_ADDRESS) && in->memory.narrow) put8(c, 0x67);
  if (in->vex) put_vex(c, in, r, x, b);
  else put_prefixes(c, in, r, x, b);
  put8(c, in->opcode);
  if (memory) put_modrm(c, field, m);
  else if (in->has_modrm) put8(c, (in->modrm & 0xc7u) | (field & 7) << 3);
  memcpy(c->at, in->bytes + in->length - in->suffix, in->suffix);
  c->at += in->suffix;
}
