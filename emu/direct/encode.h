// Writing the host's machine code.
#ifndef HEDDLE_DIRECT_ENCODE_H
#define HEDDLE_DIRECT_ENCODE_H

#include <string.h>

#include "insn.h"

// Where code is written. Too little room is for the caller to exclude.
struct code {
  uint8_t *at;
};

// An operand in memory: base and index may be NO_REGISTER. With gs it lies in the context.
struct place {
  uint8_t base, index, scale;
  bool gs;
  int32_t disp;
};

static inline struct place in_context(uint32_t offset) {
  return (struct place){.base = NO_REGISTER, .index = NO_REGISTER, .scale = 1, .gs = true, .disp = (int32_t)offset};
}

// The entry of one of the bank's tables whose number is in a register.
static inline struct place in_table(uint32_t offset, unsigned index) {
  return (struct place){.base = NO_REGISTER, .index = (uint8_t)index, .scale = 8, .gs = true, .disp = (int32_t)offset};
}

static inline struct place at_register(unsigned base, int32_t disp) {
  return (struct place){.base = (uint8_t)base, .index = NO_REGISTER, .scale = 1, .disp = disp};
}

static inline void put8(struct code *c, unsigned value) { *c->at++ = (uint8_t)value; }

static inline void put16(struct code *c, uint16_t value) {
  memcpy(c->at, &value, 2);
  c->at += 2;
}

static inline void put32(struct code *c, uint32_t value) {
  memcpy(c->at, &value, 4);
  c->at += 4;
}

static inline void put64(struct code *c, uint64_t value) {
  memcpy(c->at, &value, 8);
  c->at += 8;
}

// One-byte opcodes with ModRM; the names are those of the form with the register as the
// destination.
#define OP_ADD 0x03
#define OP_OR 0x0b
#define OP_AND 0x23
#define OP_SUB 0x2b
#define OP_XOR 0x33
#define OP_CMP 0x3b
#define OP_LOAD 0x8b
#define OP_STORE 0x89
#define OP_LEA 0x8d
#define OP_TEST 0x85
#define OP_ADD_TO_MEMORY 0x01
#define OP_SUB_FROM_MEMORY 0x29

// Conditions, as the low bits of Jcc and SETcc.
enum { CC_O, CC_NO, CC_B, CC_NB, CC_Z, CC_NZ, CC_BE, CC_NBE, CC_S, CC_NS, CC_P, CC_NP, CC_L, CC_NL, CC_LE, CC_NLE };

void put_modrm(struct code *c, unsigned reg, struct place m);
void put_op_memory(struct code *c, unsigned width, unsigned opcode, unsigned reg, struct place m);
void put_op_register(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned rm);
void put_op_imm(struct code *c, unsigned width, unsigned extension, unsigned rm, int32_t imm);
void put_imm_to_memory(struct code *c, unsigned width, struct place m, int32_t imm);
void put_shift(struct code *c, unsigned width, unsigned extension, unsigned rm, unsigned count);
void put_unary(struct code *c, unsigned width, unsigned extension, unsigned rm);
void put_test_imm(struct code *c, unsigned width, unsigned rm, int32_t imm);
void put_compare_memory(struct code *c, unsigned width, struct place m, int8_t imm);
void put_subtract_from_memory(struct code *c, struct place m, int32_t imm);
void put_decrement16(struct code *c, const uint8_t *at);
void put_move_if(struct code *c, unsigned condition, unsigned to, unsigned from);
void put_zero_extend16(struct code *c, unsigned to, unsigned from);
void put_zero_extend_memory(struct code *c, unsigned width, unsigned to, struct place m);
void put_set_overflow(struct code *c);
void put_jump_register(struct code *c, unsigned r);
void put_constant(struct code *c, unsigned reg, uint64_t value);
void put_jump_memory(struct code *c, struct place m);
uint8_t *put_jump(struct code *c);
uint8_t *put_jump_if(struct code *c, unsigned condition);
void patch_jump(uint8_t *field, const uint8_t *target);
void put_insn(struct code *c, const struct direct_insn *in, struct place m, int reg);

static inline void put_load(struct code *c, unsigned reg, struct place m) { put_op_memory(c, 8, OP_LOAD, reg, m); }
static inline void put_store(struct code *c, unsigned reg, struct place m) { put_op_memory(c, 8, OP_STORE, reg, m); }
static inline void put_shift_right(struct code *c, unsigned width, unsigned rm, unsigned count) { put_shift(c, width, 5, rm, count); }
static inline void put_move(struct code *c, unsigned to, unsigned from) { put_op_register(c, 8, OP_LOAD, to, from); }

#endif
