// Lifting with libVEX. See lift.go.
#ifndef HEDDLE_LIFT_H
#define HEDDLE_LIFT_H

#include <stddef.h>
#include <stdint.h>

// The words of one lifted block, in the order in which lift.go reads them.
struct heddle_words {
  uint64_t *at;
  size_t n, room;
};

int heddle_lift(const uint8_t *code, size_t size, uint64_t address, struct heddle_words *out);
size_t heddle_op_name(int op, char *out, size_t room);
int heddle_op_count(void);
const char *heddle_text(uint64_t word);

#endif
