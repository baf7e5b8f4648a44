// Package tracetext reads symbolic traces that are written as text, for tests whose
// examples a reader checks by eye:
//
//	init x=1 y=2
//	thread 1
//	  fork 2
//	  a = read x
//	  write x a+1
//	  join 2
//	thread 2
//	  begin
//	  b = read x
//	  path b == 2
//	  bug b != 3
//	  end
//
// Each thread runs on a core of its own; events are numbered from 0 in the order of the
// lines, which is also the recorded order of each core. Variables have four bytes.
//
//   - read, write, update: NAME = read VARIABLE; write VARIABLE VALUE; NAME = update
//     VARIABLE VALUE. A value is a number, a name, or NAME+NUMBER.
//   - fence, storefence, begin, end.
//   - fork and join with the name of a thread, which may follow later.
//   - lock, unlock, tryfailed, sleep, wake, signal, broadcast, post, take, leave with the
//     name of an object; arrive with an object and the number of threads.
//   - path and bug with two values and == or !=.
package tracetext
