// Package linux has the facts about Linux for x86-64 that several packages need, each written
// once: the table of system calls (number, name, arguments, buffers that the kernel writes, and
// traits such as whether a call may wait), the operations of futex(2), how a result says that a
// call failed, sizes and offsets of structs, and limits that /proc/sys shows.
//
// It describes Linux, not how much of it the machine implements: that is guest/kernel. It
// imports nothing of heddle.
package linux
