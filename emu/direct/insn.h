// A decoded instruction, as the translator and the emulation need it. Zydis decodes.
#ifndef HEDDLE_DIRECT_INSN_H
#define HEDDLE_DIRECT_INSN_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// General registers by their number in encodings.
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REGISTER };

#define REGISTER_BIT(r) ((uint32_t)1 << (r))

// The arithmetic flags, where RFLAGS has them, and the flags that are kept apart from them.
#define FLAG_CF 0x1u
#define FLAG_PF 0x4u
#define FLAG_AF 0x10u
#define FLAG_ZF 0x40u
#define FLAG_SF 0x80u
#define FLAG_OF 0x800u
#define FLAGS_ARITHMETIC 0x8d5u
#define FLAG_TF 0x100u
#define FLAG_IF 0x200u
#define FLAG_DF 0x400u
#define FLAG_NT 0x4000u
#define FLAG_AC 0x40000u
#define FLAG_ID 0x200000u

// The processors that a guest can have.
enum direct_level { DIRECT_V2, DIRECT_V3 };

// How an instruction is executed.
enum direct_class {
  CLASS_INVALID,     // raises #UD
  CLASS_PRIVILEGED,  // raises #GP
  CLASS_NATIVE,      // by the host, with another operand in memory
  CLASS_NOTHING,     // has no effect: NOP, fences
  CLASS_PREFETCH,    // has no effect but that a later access may be faster
  CLASS_PAUSE,
  CLASS_JUMP,        // direct
  CLASS_JUMP_IF,
  CLASS_LOOP,        // LOOP, LOOPE, LOOPNE and JRCXZ
  CLASS_JUMP_TO,     // indirect
  CLASS_CALL,
  CLASS_CALL_TO,
  CLASS_RETURN,
  CLASS_PUSH,
  CLASS_POP,
  CLASS_LEAVE,
  CLASS_STRING,
  CLASS_SYSCALL,
  CLASS_INTERRUPT,   // INT n, INT3, INT1
  CLASS_EMULATED,    // by C, by its mnemonic
};

// How a block ends, as far as a branch trace is concerned, as the other engine has it.
enum direct_kind {
  KIND_NONE,  // no branch, a direct jump, or one that leaves the program
  KIND_COND,
  KIND_JUMP,  // indirect
  KIND_CALL,
  KIND_CALL_IND,
  KIND_RET,
  KIND_REP,
};

// Further properties of an instruction.
#define INSN_MEMORY 0x1u       // has an operand in memory by ModRM, which it accesses
#define INSN_LOADS 0x2u        // ... reads it
#define INSN_STORES 0x4u       // ... writes it
#define INSN_STACK 0x8u        // the operand's segment is that of the stack, for #SS
#define INSN_ALIGNED 0x10u     // the operand must be aligned to its size
#define INSN_ATOMIC 0x20u      // LOCK, or XCHG with memory
#define INSN_FENCE 0x40u
#define INSN_REPEATED 0x80u    // REP, REPE or REPNE
#define INSN_REPNE 0x100u
#define INSN_HIGH_BYTE 0x200u  // names AH, BH, CH or DH, so that it can have no REX prefix
#define INSN_BIT_STRING 0x400u // BT and the like of a register in memory
#define INSN_ADDRESS 0x800u    // LEA: the operand in memory is not accessed
#define INSN_FLAGS_BY_COUNT 0x2000u // a shift by CL, which leaves the flags alone if CL is 0
#define INSN_FLOAT 0x4000u     // uses x87, MMX, SSE or AVX state

struct direct_operand {
  uint8_t base, index;  // registers or NO_REGISTER
  uint8_t scale;        // 1, 2, 4 or 8
  uint8_t segment;      // 0, FS or GS as enum direct_segment
  bool narrow;          // the address has 32 bits
  int64_t disp;         // with the address of the next instruction, if relative to it
};

enum direct_segment { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

struct direct_insn {
  uint64_t pc;
  uint8_t length;
  uint8_t class, kind;
  uint8_t size;         // of the operand in memory, in bytes; 0: see the mnemonic
  uint8_t width;        // of the operation, in bytes
  uint8_t address;      // of addresses, in bytes
  uint16_t mnemonic;
  uint32_t what;        // INSN_
  uint8_t order;        // its effect on the order of accesses, HEDDLE_ORDER_
  uint32_t cost;
  // General registers that it reads and writes; address registers count as read. One that is
  // written in part is read, too.
  uint32_t reads, writes;
  uint32_t address_reads;
  // The flags that it reads, that it sets, and that the manual leaves undefined.
  uint16_t flags_read, flags_set, flags_undefined;
  struct direct_operand memory;
  uint64_t target;      // of a direct branch
  int64_t imm;          // the first immediate, sign-extended as the instruction uses it
  int64_t imm2;

  // Encoding.
  bool vex;
  uint8_t opcode_map;   // 0: one byte, 1: 0F, 2: 0F 38, 3: 0F 3A
  uint8_t opcode;
  bool has_modrm, operand16;
  uint8_t repeat;       // F2 or F3 as a part of the opcode, or of a string instruction; 0: none
  bool has_rex;
  uint8_t modrm;
  uint8_t w, r, x, b;   // of REX or VEX, not inverted
  uint8_t vvvv, l, pp;  // of VEX, vvvv not inverted
  uint8_t suffix;       // bytes after the operand: immediates
  uint8_t bytes[15];
};

struct heddle_costs_direct;

enum direct_decoded { DECODED, DECODED_INVALID, DECODED_CUT };

struct direct_costs {
  uint32_t instruction, memory, divide, atomic, fence, sqrt, transcendental;
  uint32_t check;  // more for a call and for a return
};

enum direct_decoded direct_decode(enum direct_level level, const struct direct_costs *costs, const uint8_t *bytes,
                                  size_t n, uint64_t pc, struct direct_insn *out);

static inline uint32_t insn_reg(const struct direct_insn *in) { return (in->modrm >> 3 & 7) | (uint32_t)in->r << 3; }
static inline uint32_t insn_rm(const struct direct_insn *in) { return (in->modrm & 7) | (uint32_t)in->b << 3; }
static inline bool insn_is_register(const struct direct_insn *in) { return in->has_modrm && in->modrm >= 0xc0; }

#endif
