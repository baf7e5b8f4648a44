// The arithmetic flags between blocks, computed from a formula without leaving translated code:
// direct_formula_flags in flags.c has the formulas, from FORMULA_ADD on in the order of block.h.
//
// A block jumps here when it needs the flags and they are not in SAVED_FLAGS. R11 is the address
// where it continues. R10, and the places of RAX and SPARE in the context, are for translated code
// to use.
#include "context.h"

#define FORMULA_FIRST 1   // FORMULA_ADD

	.text

	// Puts the flags into EAX, in the form of SAVED_FLAGS, and returns to the block.
	.macro finish
	lahf
	seto %al
	finish_with_eax
	.endm

	.macro finish_with_eax
	mov %eax, %gs:CONTEXT_SAVED_FLAGS
	movl $0, %gs:CONTEXT_FORMULA
	mov %gs:CONTEXT_GPR, %rax
	jmp *%r11
	.endm

	.globl direct_settle
	.type direct_settle, @function
direct_settle:
	mov %rax, %gs:CONTEXT_GPR
	movzbl %gs:CONTEXT_FORMULA + 1, %r10d  // the width: 1, 2, 4 or 8, and 128 with FORMULA_CONSTANT
	btr $7, %r10d
	jnc 1f
	movswq %gs:CONTEXT_FORMULA + 2, %rax
	mov %rax, %gs:CONTEXT_SECOND
1:	movzbl %gs:CONTEXT_FORMULA, %eax
	bsf %r10d, %r10d
	lea -4*FORMULA_FIRST(%r10, %rax, 4), %eax
	lea table(%rip), %r10
	movslq (%r10, %rax, 4), %rax
	add %r10, %rax
	mov %gs:CONTEXT_FIRST, %r10
	jmp *%rax
	.size direct_settle, . - direct_settle

add8:
	subb %gs:CONTEXT_SECOND, %r10b
	addb %gs:CONTEXT_SECOND, %r10b
	finish
add16:
	subw %gs:CONTEXT_SECOND, %r10w
	addw %gs:CONTEXT_SECOND, %r10w
	finish
add32:
	subl %gs:CONTEXT_SECOND, %r10d
	addl %gs:CONTEXT_SECOND, %r10d
	finish
add64:
	subq %gs:CONTEXT_SECOND, %r10
	addq %gs:CONTEXT_SECOND, %r10
	finish
subtract8:
	addb %gs:CONTEXT_SECOND, %r10b
	subb %gs:CONTEXT_SECOND, %r10b
	finish
subtract16:
	addw %gs:CONTEXT_SECOND, %r10w
	subw %gs:CONTEXT_SECOND, %r10w
	finish
subtract32:
	addl %gs:CONTEXT_SECOND, %r10d
	subl %gs:CONTEXT_SECOND, %r10d
	finish
subtract64:
	addq %gs:CONTEXT_SECOND, %r10
	subq %gs:CONTEXT_SECOND, %r10
	finish
compare8:
	cmpb %gs:CONTEXT_SECOND, %r10b
	finish
compare16:
	cmpw %gs:CONTEXT_SECOND, %r10w
	finish
compare32:
	cmpl %gs:CONTEXT_SECOND, %r10d
	finish
compare64:
	cmpq %gs:CONTEXT_SECOND, %r10
	finish
logic8:
	testb %r10b, %r10b
	finish
logic16:
	testw %r10w, %r10w
	finish
logic32:
	testl %r10d, %r10d
	finish
logic64:
	testq %r10, %r10
	finish
test8:
	testb %r10b, %gs:CONTEXT_SECOND
	finish
test16:
	testw %r10w, %gs:CONTEXT_SECOND
	finish
test32:
	testl %r10d, %gs:CONTEXT_SECOND
	finish
test64:
	testq %r10, %gs:CONTEXT_SECOND
	finish
negate8:
	negb %r10b
	negb %r10b
	finish
negate16:
	negw %r10w
	negw %r10w
	finish
negate32:
	negl %r10d
	negl %r10d
	finish
negate64:
	negq %r10
	negq %r10
	finish

	// Shifts by SECOND. AF is undefined, and OF unless that is 1: 0, as C has it.
	.macro shift operation, register
	mov %rcx, %gs:CONTEXT_SPARE
	mov %gs:CONTEXT_SECOND, %rcx
	\operation %cl, \register
	lahf
	seto %al
	jmp shifted
	.endm

	// The same where SECOND may be the width or more, of which CF is undefined.
	.macro shift_narrow operation, register, width
	mov %rcx, %gs:CONTEXT_SPARE
	mov %gs:CONTEXT_SECOND, %rcx
	\operation %cl, \register
	lahf
	seto %al
	cmp $\width, %rcx
	jb shifted
	and $~0x100, %eax
	jmp shifted
	.endm

left8:
	shift_narrow shl, %r10b, 8
left16:
	shift_narrow shl, %r10w, 16
left32:
	shift shl, %r10d
left64:
	shift shl, %r10
right8:
	shift_narrow shr, %r10b, 8
right16:
	shift_narrow shr, %r10w, 16
right32:
	shift shr, %r10d
right64:
	shift shr, %r10
arithmetic8:
	shift sar, %r10b
arithmetic16:
	shift sar, %r10w
arithmetic32:
	shift sar, %r10d
arithmetic64:
	shift sar, %r10
shifted:
	and $0xc501, %eax
	cmp $1, %rcx
	je 1f
	and $~1, %eax
1:	mov %gs:CONTEXT_SPARE, %rcx
	finish_with_eax

equal:
	cmp %r10, %r10
	finish

	.globl direct_settle_end
direct_settle_end:

	.section .rodata
	.balign 4
table:
	.long add8 - table
	.long add16 - table
	.long add32 - table
	.long add64 - table
	.long subtract8 - table
	.long subtract16 - table
	.long subtract32 - table
	.long subtract64 - table
	.long compare8 - table
	.long compare16 - table
	.long compare32 - table
	.long compare64 - table
	.long logic8 - table
	.long logic16 - table
	.long logic32 - table
	.long logic64 - table
	.long test8 - table
	.long test16 - table
	.long test32 - table
	.long test64 - table
	.long negate8 - table
	.long negate16 - table
	.long negate32 - table
	.long negate64 - table
	.long left8 - table
	.long left16 - table
	.long left32 - table
	.long left64 - table
	.long right8 - table
	.long right16 - table
	.long right32 - table
	.long right64 - table
	.long arithmetic8 - table
	.long arithmetic16 - table
	.long arithmetic32 - table
	.long arithmetic64 - table
	.long equal - table
	.long equal - table
	.long equal - table
	.long equal - table

	.section .note.GNU-stack, "", @progbits
