// The entries of a log of the guest's loads and stores, and of everything else that its loads can
// read, and the buffers that have them. See memlog.go.
#ifndef HEDDLE_MEMLOG_BUFFER_H
#define HEDDLE_MEMLOG_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Kinds of entries; memlog.go defines their fields.
#define HEDDLE_MEM_LOAD 1u
#define HEDDLE_MEM_STORE 2u
#define HEDDLE_MEM_HIGH 3u     // the rest of the load or store before it
#define HEDDLE_MEM_MAP 4u
#define HEDDLE_MEM_KERNEL 5u
#define HEDDLE_MEM_CONTENT 6u
#define HEDDLE_MEM_ZERO 7u
#define HEDDLE_MEM_COPY 8u
#define HEDDLE_MEM_READ 9u
#define HEDDLE_MEM_PART 10u

#define HEDDLE_MEM_ATOMIC 1u    // flag of a load or store
#define HEDDLE_MEM_LATER 2u     // flag of KERNEL: the bytes are not in the log
#define HEDDLE_MEM_BUFFERED 4u  // flag of KERNEL: written by store buffers

struct heddle_mem_entry {
  uint64_t addr, value, pc;
  uint32_t branches;  // low bits; of KERNEL and READ the number of bytes
  uint16_t size;
  uint8_t kind, flags;
};

// An access of a block that an engine has translated. Each execution has a record of words, in which are its
// address, to which at is added, and its value; 0: at is the address, or value the value.
struct heddle_mem_access {
  uint64_t pc, at;
  int64_t value;
  uint16_t address_word, value_word;
  uint8_t size, branches;  // branches: of the block before it
  bool store;
};

// What takes the log while the engine runs, in place of the buffer. Its functions return how many they have
// taken. One that has not taken all takes the others later, when they are entries of the buffer.
struct heddle_mem_consumer {
  uint64_t era;  // the engine sets it: the accesses at an address are the same as long as it is
  bool held;  // until the run is over, all goes to the buffer
  size_t (*take_entries)(struct heddle_mem_consumer *c, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes);
  // Takes accesses of at most 16 bytes, up to a larger one; branches: before the block, the low bits.
  size_t (*take_accesses)(struct heddle_mem_consumer *c, const struct heddle_mem_access *accesses, size_t n, const uint64_t *record,
                       uint32_t branches);
};

// A consumer that keeps nothing.
struct heddle_mem_consumer *heddle_mem_discard(void);

// Entries and their bytes. A run is stopped at the start of a block once there are HEDDLE_MEM_FULL
// entries; the buffer grows for those that are added before that.
#define HEDDLE_MEM_FULL 8192u

struct heddle_mem_buffer {
  struct heddle_mem_entry *entries;
  size_t n, room;
  uint8_t *bytes;  // of KERNEL and CONTENT
  size_t nbytes, bytes_room;
};

struct heddle_mem_range {
  uint64_t start, end;
};

// Returns an empty buffer, or NULL if there is no memory.
static inline struct heddle_mem_buffer *heddle_mem_new_buffer(void) {
  struct heddle_mem_buffer *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->room = HEDDLE_MEM_FULL + 1024;
  b->entries = malloc(b->room * sizeof *b->entries);
  if (b->entries) return b;
  free(b);
  return NULL;
}

static inline void heddle_mem_free_buffer(struct heddle_mem_buffer *b) {
  if (!b) return;
  free(b->entries);
  free(b->bytes);
  free(b);
}

#endif
