// Package eventfd has the files of eventfd(2), timerfd_create(2) and
// signalfd(2) act on: Counter, Timer and Signals. They make events of other
// kinds readable and pollable.
//
// Nothing blocks: reads and writes that Linux would wait in fail with EAGAIN.
// Time and signals are the kernel's; Timer and Signals reach them through the
// interfaces Clock and Source.
package eventfd
