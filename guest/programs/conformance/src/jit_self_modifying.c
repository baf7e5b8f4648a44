// Self-modifying code: instructions that rewrite those just after them, in a loop, in a writable executable page.
#include "conformance.h"

enum { PAGE = 4096 };

typedef long (*function)(long);

static function code(void *p)
{
	function f;
	memcpy(&f, &p, sizeof f);
	return f;
}

int main(void)
{
	unsigned char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);

	// The immediate of the mov below is written just before it runs:
	//   mov [rip+imm], edi ; mov eax, 0x11111111 ; ret
	static const unsigned char patch[] = {
		0x89, 0x3d, 0x01, 0, 0, 0, 0xb8, 0x11, 0x11, 0x11, 0x11, 0xc3,
	};
	memcpy(p, patch, sizeof patch);
	for (long i = 0; i < 10; i++)
		CHECK(code(p)(i * 3) == i * 3);
	printf("patched next instruction\n");

	// A loop whose body is changed from add to sub half way:
	//   xor eax,eax ; mov ecx,10
	// 7: add eax,edi ; cmp ecx,8 ; jne +7 ; mov byte [rip+body],0x29 ; dec ecx ; jnz 7 ; ret
	static const unsigned char loop[] = {
		0x31, 0xc0, 0xb9, 10,   0, 0, 0,              // xor, mov
		0x01, 0xf8,                                   // add eax, edi
		0x83, 0xf9, 8,                                // cmp ecx, 8
		0x75, 7,                                      // jne over the write
		0xc6, 0x05, 0xf2, 0xff, 0xff, 0xff, 0x29,     // mov byte [rip-14], 0x29
		0xff, 0xc9,                                   // dec ecx
		0x75, 0xee,                                   // jnz to add
		0xc3,
	};
	for (int i = 0; i < 3; i++) {
		memcpy(p + 256, loop, sizeof loop);
		// Three times added, then seven times subtracted.
		printf("changed in the loop: %ld\n", code(p + 256)(7 + i));
	}

	// Code that crosses a page boundary, changed on either side.
	static const unsigned char ret_imm[] = {0xb8, 0x44, 0x33, 0x22, 0x11, 0xc3};
	unsigned char *q = p + PAGE - 3;
	memcpy(q, ret_imm, sizeof ret_imm);
	printf("across pages: %lx\n", (unsigned long)code(q)(0));
	q[1] = 0x55;
	printf("first page changed: %lx\n", (unsigned long)code(q)(0));
	q[4] = 0x66;
	printf("second page changed: %lx\n", (unsigned long)code(q)(0));
	return 0;
}
