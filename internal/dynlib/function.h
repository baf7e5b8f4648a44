/* FUNCTION number, name defines the function with that number of a library, where LIBRARY is the
   name of its struct heddle_dynlib, and NAMES and FUNCTIONS those of its parts. The entry of
   FUNCTIONS is first the address of the code that looks the function up. */

	.macro FUNCTION number, name
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	jmp *FUNCTIONS+8*\number(%rip)
1:	pushq $\number
	jmp .Lbind
	.size \name, .-\name

	.section .rodata.str1.1, "aMS", @progbits, 1
2:	.asciz "\name"

	.section .data.rel.ro.names, "aw", @progbits
	.quad 2b

	.section .data.functions, "aw", @progbits
	.quad 1b
	.text
	.endm

	.section .note.GNU-stack, "", @progbits

	.section .data.rel.ro.names, "aw", @progbits
	.balign 8
	.globl NAMES
	.hidden NAMES
NAMES:

	.section .data.functions, "aw", @progbits
	.balign 8
	.globl FUNCTIONS
	.hidden FUNCTIONS
FUNCTIONS:

	.text
	.balign 16

/* The number of the function is on the stack, above the return address of its caller. The registers
   with arguments are kept: also that of variadic functions, RAX. */
.Lbind:
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	pushq %rax
	subq $136, %rsp
	movups %xmm0, (%rsp)
	movups %xmm1, 16(%rsp)
	movups %xmm2, 32(%rsp)
	movups %xmm3, 48(%rsp)
	movups %xmm4, 64(%rsp)
	movups %xmm5, 80(%rsp)
	movups %xmm6, 96(%rsp)
	movups %xmm7, 112(%rsp)
	leaq LIBRARY(%rip), %rdi
	movq 192(%rsp), %rsi
	call heddle_dynlib_bind
	movq %rax, %r11
	movups (%rsp), %xmm0
	movups 16(%rsp), %xmm1
	movups 32(%rsp), %xmm2
	movups 48(%rsp), %xmm3
	movups 64(%rsp), %xmm4
	movups 80(%rsp), %xmm5
	movups 96(%rsp), %xmm6
	movups 112(%rsp), %xmm7
	addq $136, %rsp
	popq %rax
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	addq $8, %rsp
	jmp *%r11
