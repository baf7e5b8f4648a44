// A run's accesses from its memory log. follower.go describes it.
#ifndef HEDDLE_RACES_FOLLOW_H
#define HEDDLE_RACES_FOLLOW_H

#include "races.h"

// A call that a thread is in: where its return address is.
struct races_frame {
  uint64_t slot, ret;
  uint32_t node;
};

// All stacks of calls that were seen, as a tree. Number 0 is that without calls.
struct races_node {
  uint64_t pc;
  uint32_t parent;
  uint32_t latest;  // a child
};

// Instructions at start up to end, without that.
struct races_code {
  uint64_t start, end;
};

// Code by address and without overlaps.
struct races_code_list {
  struct races_code *code;
  size_t n;
};

// The addresses of a process: the pages to which they were last seen to lead.
struct races_space {
  uint64_t id;
  struct races_table pages;
  struct races_code_list atomic;  // whose accesses are atomic ones, whatever the instruction
  struct races_code_list locking;  // whose atomic instructions access synchronization words
};

// Where a page of addresses leads for a thread in a segment.
struct races_near {
  uint64_t key;      // races_key; 0: none
  struct races_page *page;
  struct races_touched *touched;
  uint8_t *content;  // NULL: look at the page's
  uint32_t full;     // as in touched
};

// Keys have the number of a page of addresses in their lower bits, and the number of the turn above. No turn
// has all bits of the latter, which the numbers of addresses in the upper half have.
#define KEY_PAGE_BITS 36u
#define KEY_TURNS (((uint64_t)1 << 27) - 1)

// A thread of the run. It follows calls by its accesses: a call stores its return address, and the return
// loads it.
struct races_runner {
  struct races_space *space;
  uint32_t number;
  struct races_near *near;        // NEAR_PAGES; NULL: none yet
  uint64_t owner, changes, losses, turn;  // at its last turn: its segment, the changes and losses before, and its number
  bool ignores;  // its accesses belong to an operation or an allocator
  bool begun;
  uint64_t low, high;  // bounds of the stack as far as it was used
  uint64_t slot;       // of the innermost call
  uint32_t node;       // of all calls
  uint32_t nframes, frames_room;
  struct races_frame *frames;
};

#define NEAR_PAGES 1024u
#define MAX_STACKS ((uint32_t)1 << 20)

// Whose atomic accesses make synchronization words: nobody's, those of the code of a space's lists, or all. The
// values are those of Atomics in follower.go.
enum races_atomics { RACES_NO_ATOMICS, RACES_CODE_ATOMICS, RACES_ALL_ATOMICS };

// Why races_follow has stopped.
enum races_stop { RACES_END, RACES_FOUND, RACES_FIRST, RACES_STRAY };

struct races_follower {
  struct heddle_mem_consumer consumer;  // the first field: a pointer to it is one to the follower
  struct races_detector *detector;
  bool values;           // the content of memory is followed
  bool happens_before;
  bool atomics;          // atomic instructions do not race with each other
  enum races_atomics words;  // which of them access synchronization words
  uint64_t number;       // of the next access: how many the detector got
  uint64_t skipped;      // others

  struct races_runner *runner;  // whose accesses come next, or NULL
  uint64_t turns;               // turns are numbered; a runner's is the same until its segment ends or a page moves
  uint64_t first_turn;          // whose keys are in use
  uint64_t changes;             // how many pages of addresses have led elsewhere than before
  uint64_t key;                 // of page 0 in the present turn
  struct races_near *near;      // the runner's
  uint64_t branches;            // of the last access
  uint64_t start;               // branches of the thread where its count was counted
  uint32_t counted;

  struct races_access access;   // the last one
  uint64_t addr;                // its address for the thread

  struct races_table mapped;    // pages by address, as the log has it
  struct races_touched nothing;  // without bytes, if repeated accesses are compared

  struct races_node *nodes;
  uint32_t nnodes, nodes_room;
  struct races_table children;  // lists of nodes that have other children after them, by hash
  uint32_t *others;             // of each node, another one of the same hash
};

struct races_follower *races_follower_open(struct races_detector *d, bool happens_before, bool values);
void races_follower_close(struct races_follower *f);
size_t races_follow(struct races_follower *f, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes, uint32_t *stop);
struct heddle_mem_consumer *races_begin_run(struct races_follower *f);
void races_send(struct races_follower *f, uint64_t addr);

struct races_runner *races_new_runner(uint32_t number, struct races_space *space);
void races_free_runner(struct races_runner *r);
void races_end_calls(struct races_runner *r);

struct races_space *races_new_space(uint64_t id);
void races_set_code(struct races_code_list *list, const struct races_code *code, size_t n);
void races_free_space(struct races_space *s);
bool races_space_page(const struct races_space *s, uint64_t number, uint64_t *page);
void races_note_page(struct races_follower *f, struct races_space *s, uint64_t number, uint64_t page);
void races_drop_pages(struct races_follower *f, struct races_space *s, uint64_t from, uint64_t to);
size_t races_space_numbers(const struct races_space *s, uint64_t first, uint64_t last, uint64_t *numbers);

#endif
