// Package procfs generates the guest's /proc and /sys from the kernel's processes and
// the machine. Every file's text is generated when it is opened. Nothing of the host's
// own /proc and /sys is read or shown.
//
// The main types: Kernel, Process and the structures in kernel.go are the view that the
// guest's kernel provides; Mount puts both file systems into the tree.
//
// Invariants:
//
//  1. A file is an entry of the tables in this package and the ids of its
//     subject. Nodes are plain data and can be copied with a snapshot.
//  2. Links such as /proc/PID/fd/3 and /proc/PID/root lead to objects of the
//     guest; their text is never resolved on the host.
//  3. The data about cores agrees with CPUID and with the configured number.
package procfs
