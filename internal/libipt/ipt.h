// Decoding with libipt over an image of code that changes. See libipt.go.
#ifndef HEDDLE_LIBIPT_H
#define HEDDLE_LIBIPT_H

#include <intel-pt.h>
#include <stdint.h>

// A piece of code that is present once a number of instructions, at, have been decoded. Pieces are
// in the order of at.
struct heddle_code {
  uint64_t at, space, address, length, offset;  // offset: in the bytes of all pieces
};

struct heddle_section {
  uint64_t offset, size, address;
};

struct heddle_event {
  uint64_t type, after, ip, space, tsc;
};

struct heddle_ipt {
  struct pt_insn_decoder *decoder;
  struct heddle_pages *pages;
  const struct heddle_code *code;
  const uint8_t *bytes;
  uint64_t pieces, applied, count;
  int status;  // of the last call
  // The address of the last instruction, if the call that returned it failed (last is 1).
  uint64_t last_ip;
  int last;
};

int heddle_ipt_open(struct heddle_ipt *d, uint8_t *stream, uint64_t n, uint32_t crystal, uint8_t mtc, uint8_t nominal);
void heddle_ipt_close(struct heddle_ipt *d);
int heddle_ipt_sync(struct heddle_ipt *d);
int heddle_ipt_next(struct heddle_ipt *d, uint64_t *addresses, uint64_t max, uint64_t *n, struct heddle_event *event);
int64_t heddle_ipt_blocks(uint8_t *stream, uint64_t n, const char *file, const struct heddle_section *sections,
                          uint64_t nsections);

#endif
