// Package loader starts programs: it maps an ELF program, and its dynamic linker, into
// an address space, and lays out the initial stack, as execve(2) of Linux does. Of
// scripts that begin with #! it starts the interpreters. For reports it walks stacks by
// the call frame information of compilers (Unwinder).
//
// It has no knowledge of file systems, descriptors or processes: an Opener supplies
// files, and the result is an Image for the kernel to start.
//
// Nothing in a file is trusted. Whatever the bytes are, Load ends with a mapped program
// or an Error, in time and memory bounded by the parts that it reads: headers of
// limited size, strings of limited length.
package loader
