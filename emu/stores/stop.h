// The reasons why a run stopped, as arch.StopReason has them.
#ifndef HEDDLE_STOP_H
#define HEDDLE_STOP_H

enum heddle_stop {
  HEDDLE_STOP_NONE,
  HEDDLE_STOP_BUDGET,      // the budget of instructions or cycles is used up
  HEDDLE_STOP_SYSCALL,     // after a SYSCALL instruction
  HEDDLE_STOP_FAULT,       // page fault; the instruction has had no effect
  HEDDLE_STOP_NO_MEMORY,   // a page had to be copied, and no page is left
  HEDDLE_STOP_EXCEPTION,   // exception: see vector and the PC, which is at the instruction
  HEDDLE_STOP_INTERRUPT,   // INT n or INT3: see vector; the PC is after the instruction
  HEDDLE_STOP_BREAKPOINT,  // at a breakpoint, before its instruction
  HEDDLE_STOP_PAUSE,       // after a PAUSE instruction
  HEDDLE_STOP_SYNC,        // before an atomic instruction or fence
  HEDDLE_STOP_ENGINE,      // failure of the engine: see error
  HEDDLE_STOP_LOG,         // a log is full, or the run is polled; before a block
};

#endif
