// The context, shared by translated code and the C around it. Translated code reaches it through
// the GS segment. The numbers are for the assembler and for emitted code; engine.h
// checks them against the structure.
#ifndef HEDDLE_DIRECT_CONTEXT_H
#define HEDDLE_DIRECT_CONTEXT_H

#define CONTEXT_GPR 0x000          // the guest's registers, where the host's do not have them
#define CONTEXT_FLAGS 0x080        // the six arithmetic flags: LAHF in bits 8-15, OF in bit 0
#define CONTEXT_RIP 0x088          // the guest's program counter at an exit
#define CONTEXT_BUDGET 0x090       // the rest of the budget that was granted: see blocks.c
#define CONTEXT_HOST_STACK 0x098   // the host's stack pointer while translated code runs
#define CONTEXT_TARGET 0x0a0       // the translated code to enter
#define CONTEXT_FS_BASE 0x0a8
#define CONTEXT_GS_BASE 0x0b0      // the guest's
#define CONTEXT_POINTER 0x0b8      // the host address of a unit's operand in memory
#define CONTEXT_EXIT 0x0c0         // why a block was left: the number of an exit or of a point
#define CONTEXT_LEAVE 0x0c8        // addresses of the ways out, see enter.S
#define CONTEXT_LEAVE_UNIT 0x0d0
#define CONTEXT_MISS 0x0d8
#define CONTEXT_LOG 0x0e0         // the end of the raw log, see log.h
#define CONTEXT_SAVED_FLAGS 0x0e8  // the flags that a block has saved, in the form of FLAGS
#define CONTEXT_BRANCH 0x0f0       // the exit of the last indirect branch
#define CONTEXT_SPARE 0x0f8        // a word for emitted code to use within an instruction
#define CONTEXT_HOST_GPR 0x100     // the host's registers at a miss
#define CONTEXT_STACK_READ 0x180   // the page of the stack: its address, and the host's
#define CONTEXT_STACK_WRITE 0x190
#define CONTEXT_FORMULA 0x1a0      // between blocks: how the flags follow from these, see flags.c
#define CONTEXT_FIRST 0x1a8
#define CONTEXT_SECOND 0x1b0
#define CONTEXT_BRANCHES 0x1b8     // branches that blocks have counted
#define CONTEXT_SHIFTED 0x1c0      // within a block: the value that a shift by a count was of, and the count
#define CONTEXT_COUNT 0x1d0
#define CONTEXT_STORES 0x1f8       // where the next block that is entered logs its first store: see storelog.h
#define CONTEXT_BOUNCE 0x200       // a copy of an operand that lies in two pages: 192 bytes
// Where the signal handler has the host's registers when it returns by itself: general registers,
// program counter and arithmetic flags, in the form of FLAGS.
#define CONTEXT_RETURN_GPR 0x2c0
#define CONTEXT_RETURN_RIP 0x340
#define CONTEXT_RETURN_FLAGS 0x348
#define CONTEXT_SETTLE 0x350       // address of direct_settle
// The return addresses of the last calls, in a ring, and the place of the newest in it, in bytes: see log.h.
#define CONTEXT_NEWEST 0x1c8
#define CONTEXT_CALLS 0x400
#define CONTEXT_CALLS_COUNT 64
#define CONTEXT_BYTES 0x600

// After the context: the table of targets of indirect jumps, by the low 16 bits of their
// address (where the block's code is, or 0), then the tables of pages, by bits 12 to 31 of an address. A page of the guest that
// may be read has its address in READ_PAGES and the host address of its bytes in READ_BYTES;
// an entry that is not in use is an address of another slot. Pages that may be written (and
// read, and that hold no code) are in the other two, too.
#define BANK_TARGETS 0x4000
#define BANK_TARGETS_COUNT 0x10000
#define BANK_OUTCOMES 0xe0000       // 64 KiB of collected outcomes: see log.h
#define BANK_READ_PAGES 0x100000
#define BANK_READ_BYTES 0x900000
#define BANK_WRITE_PAGES 0x1100000
#define BANK_WRITE_BYTES 0x1900000
#define BANK_PAGES_COUNT 0x100000
// A byte for each block: 1 if its instructions are known to be in the bank's address space.
#define BANK_HELD 0x2100000
#define BANK_HELD_BYTES 0x70000
#define BANK_BYTES 0x2170000

#endif
