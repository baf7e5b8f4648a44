// The log of stores that blocks write for buffers of stores: the bytes that each is about to hide.
#ifndef HEDDLE_DIRECT_STORE_LOG_H
#define HEDDLE_DIRECT_STORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A store of an instruction in a block, as translated code logs it.
struct direct_logged_store {
  uint64_t pointer;  // an address of the host
  uint32_t what;     // the distance of the store from it, and LOGGED_
  uint32_t unused;
  uint64_t old[2];   // the bytes before it
};

#define LOGGED_OFFSET 0xffffu
#define LOGGED_SIZE_SHIFT 16  // 5 bits
#define LOGGED_SIZE 0x1fu
#define LOGGED_WEAK 0x1000000u

// The stores that a run of blocks may make before C takes them out of the log.
#define LOGGED_STORES 4096u

struct direct_store_log {
  struct direct_logged_store *all, *taken;  // taken: the first that C has not taken yet
  uint64_t *va;                             // of each page that is in a table for writing: its address
};

#endif
