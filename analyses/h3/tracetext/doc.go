// Package tracetext reads and writes symbolic traces as text, for tests whose examples a
// reader checks by eye:
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
// lines, which is also the recorded order of each core. A thread may be continued by a second
// line with its name; conditions after a line thread without a name, or before the first one, are
// those of no thread.
//
//   - read, write, update: NAME = read VARIABLE; write VARIABLE VALUE; NAME = update
//     VARIABLE VALUE, whose value may be a sum of NAME, too. A variable is a name or an address, 0x600000; it has four bytes, or
//     x:SIZE of 1 to 8 bytes. A value is a number, a name, or a sum of these, of that size.
//   - array x SIZE COUNT makes x an array, whose elements are x[NUMBER] or x[NAME].
//   - fence, storefence, begin, end.
//   - fork and join with the name of a thread, which may follow later.
//   - lock, unlock, tryfailed, sleep, wake, signal, broadcast, post, take, leave with the
//     name of an object; arrive with an object and the number of threads. After the
//     object, shared marks a reader's lock, unlock or tryfailed, and timedout a wake
//     that is not due to a signal.
//   - path and bug with two values of one size and one of == != < <= <u <=u, of which the
//     last two compare without signs.
//   - semaphore s 2 gives a semaphore its initial value; deadlock says that threads that
//     sleep to the end were never woken.
//
// Format writes a trace in this form, in which Parse reads it again. What the form has no
// words for, such as a product, is written in quotes in the notation of symbolic.Expr, and
// Parse refuses it.
package tracetext
