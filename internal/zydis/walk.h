// Straight-line runs of instructions. See zydis.go.
#ifndef HEDDLE_ZYDIS_WALK_H
#define HEDDLE_ZYDIS_WALK_H

#include <stddef.h>
#include <stdint.h>

// Kinds of the last instruction of a run, in the order of zydis.go.
enum {
  HEDDLE_STRAIGHT,
  HEDDLE_JUMP,
  HEDDLE_CALL,
  HEDDLE_CONDITIONAL,
  HEDDLE_INDIRECT_JUMP,
  HEDDLE_INDIRECT_CALL,
  HEDDLE_RETURN,
  HEDDLE_FAR,
  HEDDLE_SHORT,
  HEDDLE_INVALID,
};

struct heddle_walk {
  uint32_t count;  // instructions in lengths
  uint32_t bytes;  // the sum of lengths
  uint32_t kind;
  int64_t relative;  // displacement from the end of the last instruction
};

// One instruction.
struct heddle_instruction {
  uint32_t written;    // flags of RFLAGS that it defines
  uint32_t undefined;  // flags that it leaves undefined
  char text[96];       // in Intel syntax
  char extension[16];  // of the instruction set that it belongs to, as Zydis names it
};

// Decodes the instruction at the start of code. Returns its length, 0 if the bytes are not an instruction.
uint32_t heddle_instruction(const uint8_t *code, size_t n, uint64_t address, struct heddle_instruction *out);

void heddle_walk(const uint8_t *code, size_t n, uint8_t *lengths, size_t max, struct heddle_walk *out);

#endif
