// The ways into translated code and out of it. GS is set to the context by the caller.
//
//             direct_enter_unit      all registers and flags from the context
//   C ------> direct_enter           ... but registers 10 and 11
//             direct_return_miss     as they were at a miss
//
// With a raw log, direct_enter_logged and direct_leave_logged are in the place of direct_enter and direct_leave.
//
//   C <------ direct_leave_unit      all registers and flags are the guest's
//             direct_leave           ... but 10 and 11, and the flags
//             direct_leave_fault     nothing is kept: the context has the state before
//             direct_miss            a block needs a page that the tables do not have
//             direct_trap            an instruction of a block has raised an exception of the host;
//                                    the handler has saved the stack pointer
//
// Each of the ways in returns to its caller by one of the ways out: 0 from the first two,
// 1 from direct_leave_fault, 2 from direct_miss, 3 from direct_trap.
#include "context.h"

#define GPR(n) %gs:(CONTEXT_GPR + 8 * (n))
#define HOST(n) %gs:(CONTEXT_HOST_GPR + 8 * (n))

	.text

	.macro save_host
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, %gs:CONTEXT_HOST_STACK
	.endm

	.macro restore_host
	mov %gs:CONTEXT_HOST_STACK, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	.endm

	// OF from AL, the others from AH.
	.macro load_flags
	mov %gs:CONTEXT_FLAGS, %eax
	add $0x7f, %al
	sahf
	.endm

	.macro load_most
	mov GPR(1), %rcx
	mov GPR(2), %rdx
	mov GPR(3), %rbx
	mov GPR(4), %rsp
	mov GPR(5), %rbp
	mov GPR(6), %rsi
	mov GPR(7), %rdi
	mov GPR(8), %r8
	mov GPR(9), %r9
	mov GPR(12), %r12
	mov GPR(13), %r13
	mov GPR(14), %r14
	.endm

	.macro load_common
	load_most
	mov GPR(15), %r15
	.endm

	.macro save_most
	mov %rcx, GPR(1)
	mov %rdx, GPR(2)
	mov %rbx, GPR(3)
	mov %rsp, GPR(4)
	mov %rbp, GPR(5)
	mov %rsi, GPR(6)
	mov %rdi, GPR(7)
	mov %r8, GPR(8)
	mov %r9, GPR(9)
	mov %r12, GPR(12)
	mov %r13, GPR(13)
	mov %r14, GPR(14)
	.endm

	.macro save_common
	save_most
	mov %r15, GPR(15)
	.endm

	.globl direct_ways_begin
direct_ways_begin:

	.globl direct_enter_unit
	.type direct_enter_unit, @function
direct_enter_unit:
	save_host
	load_flags
	load_common
	mov GPR(10), %r10
	mov GPR(11), %r11
	mov GPR(0), %rax
	jmp *%gs:CONTEXT_TARGET
	.size direct_enter_unit, . - direct_enter_unit

	.globl direct_leave_unit
	.type direct_leave_unit, @function
direct_leave_unit:
	mov %rax, GPR(0)
	lahf
	seto %al
	mov %eax, %gs:CONTEXT_FLAGS
	save_common
	mov %r10, GPR(10)
	mov %r11, GPR(11)
	restore_host
	xor %eax, %eax
	ret
	.size direct_leave_unit, . - direct_leave_unit

	// Registers 10 and 11 are for blocks to use.
	.globl direct_enter
	.type direct_enter, @function
direct_enter:
	save_host
	load_flags
	load_common
	mov GPR(0), %rax
	jmp *%gs:CONTEXT_TARGET
	.size direct_enter, . - direct_enter

	.globl direct_leave
	.type direct_leave, @function
direct_leave:
	mov %rax, GPR(0)
	save_common
	restore_host
	xor %eax, %eax
	ret
	.size direct_leave, . - direct_leave

	// The same, with the end of the raw log in register 15.
	.globl direct_enter_logged
	.type direct_enter_logged, @function
direct_enter_logged:
	save_host
	load_flags
	load_most
	mov %gs:CONTEXT_LOG, %r15
	mov GPR(0), %rax
	jmp *%gs:CONTEXT_TARGET
	.size direct_enter_logged, . - direct_enter_logged

	.globl direct_leave_logged
	.type direct_leave_logged, @function
direct_leave_logged:
	mov %rax, GPR(0)
	save_most
	mov %r15, %gs:CONTEXT_LOG
	restore_host
	xor %eax, %eax
	ret
	.size direct_leave_logged, . - direct_leave_logged

	.globl direct_leave_fault
	.type direct_leave_fault, @function
direct_leave_fault:
	restore_host
	mov $1, %eax
	ret
	.size direct_leave_fault, . - direct_leave_fault

	.macro save_all_but_stack
	mov %rax, HOST(0)
	mov %rcx, HOST(1)
	mov %rdx, HOST(2)
	mov %rbx, HOST(3)
	mov %rbp, HOST(5)
	mov %rsi, HOST(6)
	mov %rdi, HOST(7)
	mov %r8, HOST(8)
	mov %r9, HOST(9)
	mov %r10, HOST(10)
	mov %r11, HOST(11)
	mov %r12, HOST(12)
	mov %r13, HOST(13)
	mov %r14, HOST(14)
	mov %r15, HOST(15)
	.endm

	.globl direct_miss
	.type direct_miss, @function
direct_miss:
	mov %rsp, HOST(4)
	save_all_but_stack
	restore_host
	mov $2, %eax
	ret
	.size direct_miss, . - direct_miss

	.globl direct_trap
	.type direct_trap, @function
direct_trap:
	save_all_but_stack
	restore_host
	mov $3, %eax
	ret
	.size direct_trap, . - direct_trap

	.globl direct_return_miss
	.type direct_return_miss, @function
direct_return_miss:
	save_host
	mov HOST(0), %rax
	mov HOST(1), %rcx
	mov HOST(2), %rdx
	mov HOST(3), %rbx
	mov HOST(4), %rsp
	mov HOST(5), %rbp
	mov HOST(6), %rsi
	mov HOST(7), %rdi
	mov HOST(8), %r8
	mov HOST(9), %r9
	mov HOST(10), %r10
	mov HOST(11), %r11
	mov HOST(12), %r12
	mov HOST(13), %r13
	mov HOST(14), %r14
	mov HOST(15), %r15
	jmp *%gs:CONTEXT_TARGET
	.size direct_return_miss, . - direct_return_miss

#define RETURN(n) %gs:(CONTEXT_RETURN_GPR + 8 * (n))
#define SYS_rt_sigprocmask 14
#define SIG_SETMASK 2

	// Returns from a signal handler without the host's kernel: see signals.c. Arguments: the
	// floating-point state as XSAVE stores it, its components, and the mask of signals. Without components it is as FXSAVE
	// stores it, which is all that a processor without XSAVE has. Once
	// signals are allowed, another handler may use this one's stack.
	.globl direct_return_signal
	.type direct_return_signal, @function
direct_return_signal:
	mov %rdx, %r8
	mov %esi, %eax
	mov %rsi, %rdx
	shr $32, %rdx
	test %rsi, %rsi
	jz 1f
	xrstor64 (%rdi)
	jmp 2f
1:	fxrstor64 (%rdi)
2:	mov $SYS_rt_sigprocmask, %eax
	mov $SIG_SETMASK, %edi
	mov %r8, %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	mov %gs:CONTEXT_RETURN_FLAGS, %eax
	add $0x7f, %al
	sahf
	mov RETURN(0), %rax
	mov RETURN(1), %rcx
	mov RETURN(2), %rdx
	mov RETURN(3), %rbx
	mov RETURN(5), %rbp
	mov RETURN(6), %rsi
	mov RETURN(7), %rdi
	mov RETURN(8), %r8
	mov RETURN(9), %r9
	mov RETURN(10), %r10
	mov RETURN(11), %r11
	mov RETURN(12), %r12
	mov RETURN(13), %r13
	mov RETURN(14), %r14
	mov RETURN(15), %r15
	mov RETURN(4), %rsp
	.globl direct_return_jump
direct_return_jump:
	jmp *%gs:CONTEXT_RETURN_RIP
	.size direct_return_signal, . - direct_return_signal

	.globl direct_ways_end
direct_ways_end:

	// Has the processor fetch anew what was written as code through another address.
	.globl direct_serialize
	.type direct_serialize, @function
direct_serialize:
	mov %rsp, %rax
	mov %ss, %ecx
	push %rcx
	push %rax
	pushfq
	mov %cs, %ecx
	push %rcx
	lea 1f(%rip), %rcx
	push %rcx
	iretq
1:	ret
	.size direct_serialize, . - direct_serialize

	.section .note.GNU-stack, "", @progbits
