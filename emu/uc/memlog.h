// A log of the guest's loads and stores, and of everything else that its loads can read. See
// memlog.go.
#ifndef HEDDLE_MEMLOG_H
#define HEDDLE_MEMLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unicorn/unicorn.h>

struct heddle_cpu;
struct heddle_inside;
struct heddle_ram;

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

#define HEDDLE_MEM_ATOMIC 1u   // flag of a load or store
#define HEDDLE_MEM_LATER 2u    // flag of KERNEL: the bytes are not in the log
#define HEDDLE_MEM_BUFFERED 4u     // flag of KERNEL: written by store buffers

struct heddle_mem_entry {
  uint64_t addr, value, pc;
  uint32_t branches;  // low bits; of KERNEL and READ the number of bytes
  uint16_t size;
  uint8_t kind, flags;
};

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

// Facts about the instruction at an address.
struct heddle_mem_site {
  uint64_t pc;
  uint64_t facts; // the space's code number << 2 | ATOMIC | WIDE
};

#define HEDDLE_MEM_SITES (1u << 14)

struct heddle_mem_log {
  // The data of the hooks.
  uint64_t pc;         // of the running instruction
  size_t start;        // index of its first entry
  struct heddle_mem_buffer *to;
  uint64_t *va;        // of each page: its virtual address in the engine's translations
  bool on, muted, selective;
  bool partial;        // some accesses are left out, so contents and writes of the kernel are, too
  bool hooks_lost;     // the engine reports no accesses until it is restarted
  // The last page that the engine asked for, the start of the entries of the instruction that
  // needed it, and the page's previous virtual address.
  uint64_t last_page, last_was;
  size_t last_start;
  bool flush;          // the engine's address translations must be dropped before the next run
  struct heddle_mem_site *sites;

  struct heddle_cpu *cpu;
  uint64_t *filled;    // of each page: the epoch in which va was set
  uint64_t epoch;      // incremented at each flush of the engine's translations
  uint32_t *known;     // of each page: the generation in which its content was logged
  uint32_t generation;
  struct heddle_mem_range *data, *code;
  size_t ndata, ncode;
  uc_hook hooks[3];
};

int heddle_mem_open(struct heddle_cpu *cpu, const struct heddle_mem_range *data, size_t ndata,
                    const struct heddle_mem_range *code, size_t ncode, bool partial);
void heddle_mem_close(struct heddle_cpu *cpu);
struct heddle_mem_buffer *heddle_mem_new_buffer(void);
void heddle_mem_free_buffer(struct heddle_mem_buffer *b);

void heddle_mem_swap(struct heddle_cpu *cpu, struct heddle_mem_buffer *b);
void heddle_mem_forget(struct heddle_cpu *cpu);
void heddle_mem_undo(struct heddle_mem_log *log);
void heddle_mem_pages(struct heddle_cpu *cpu, const struct heddle_inside *in);
void heddle_mem_pieces(struct heddle_cpu *cpu, const struct heddle_inside *in, uint32_t from, uint32_t upto);
void heddle_mem_translated(struct heddle_mem_log *log, uint64_t pc, uint32_t size);
void heddle_mem_retry(struct heddle_mem_log *log);
void heddle_mem_hooks_regained(struct heddle_mem_log *log);
void heddle_mem_filled(struct heddle_mem_log *log, uint64_t va, uint64_t page, uc_mem_type type, uint32_t *perms);
void heddle_mem_buffered(struct heddle_ram *ram, uint64_t physical, uint64_t va, const void *bytes, size_t n);

#endif
