# A process that does nothing by itself: its tracer has it execute system calls and instructions.
	.globl _start
_start:
	syscall
	int3
