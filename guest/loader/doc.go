// Package loader starts programs: it maps an ELF program, and the dynamic
// linker that it asks for, into an address space, and lays out the initial
// stack, as execve(2) of Linux does. Scripts that begin with #! are followed to
// their interpreters. For reports it finds the functions that addresses belong
// to (Symbols) and walks stacks by the call frame information of compilers
// (Unwinder).
//
// It knows nothing of file systems, descriptors or processes: an Opener
// supplies files, and the result is an Image for the kernel to start.
//
// Nothing in a file is trusted. Whatever the bytes are, Load ends with a mapped
// program or an Error, in time and memory bounded by what it reads: headers of
// limited size, strings of limited length.
package loader
