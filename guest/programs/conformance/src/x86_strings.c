// REP string instructions: every size, both directions, counts of zero, overlaps, flags, faults in the middle that resume.
#include "conformance.h"

#include <ucontext.h>

static unsigned char *page;
static volatile int faults;
static volatile unsigned long left_at_fault;

static void repair(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	faults++;
	left_at_fault = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RCX];
	CHECK(mprotect((void *)((uintptr_t)si->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE) == 0);
}

static uint32_t sum(const unsigned char *p, int n)
{
	uint32_t s = 1;
	for (int i = 0; i < n; i++)
		s = s * 31 + p[i];
	return s;
}

#define MOVS(size, dir, d, s, n)                                                                               \
	({                                                                                                     \
		void *di = (d);                                                                                \
		const void *si = (s);                                                                          \
		unsigned long c = (n);                                                                         \
		__asm__ volatile(dir "\n rep movs" size "\n cld" : "+D"(di), "+S"(si), "+c"(c) : : "memory");  \
		c;                                                                                             \
	})

int main(void)
{
	unsigned char a[256], b[300];
	for (int i = 0; i < 256; i++)
		a[i] = i * 7 + 3;
	memset(b, 0, sizeof b);
	MOVS("b", "cld", b + 1, a, 100);
	printf("movsb %x\n", sum(b, 300));
	MOVS("w", "cld", b + 3, a + 1, 50);
	printf("movsw %x\n", sum(b, 300));
	MOVS("l", "cld", b + 5, a + 2, 20);
	printf("movsl %x\n", sum(b, 300));
	MOVS("q", "cld", b + 7, a + 3, 30);
	printf("movsq %x\n", sum(b, 300));
	MOVS("q", "std", b + 200, a + 200, 10);
	printf("movsq backwards %x\n", sum(b, 300));
	printf("zero count %lu, %x\n", MOVS("b", "cld", b, a, 0), sum(b, 300));
	// An overlap repeats the pattern going up and moves it going down.
	MOVS("b", "cld", b + 3, b, 90);
	printf("overlap up %x\n", sum(b, 300));
	MOVS("b", "std", b + 192, b + 189, 90);
	printf("overlap down %x\n", sum(b, 300));

	void *di = b;
	unsigned long c = 33;
	__asm__ volatile("rep stosl" : "+D"(di), "+c"(c) : "a"(0x01020304) : "memory");
	printf("stosl %x, moved %ld, left %lu\n", sum(b, 300), (long)((unsigned char *)di - b), c);
	unsigned long al = 0;
	const void *si = a + 5;
	__asm__ volatile("lodsb" : "+S"(si), "+a"(al));
	printf("lodsb %lx, moved %ld\n", al, (long)((const unsigned char *)si - a));

	// Scans and comparisons: remaining count, final addresses, flags.
	unsigned char z, below;
	di = a;
	c = 256;
	__asm__ volatile("repne scasb\n sete %2" : "+D"(di), "+c"(c), "=q"(z) : "a"(a[77]) : "cc");
	printf("scasb: at %ld, left %lu, found %d\n", (long)((unsigned char *)di - a), c, z);
	di = b;
	c = 100;
	__asm__ volatile("repe scasb\n sete %2" : "+D"(di), "+c"(c), "=q"(z) : "a"(4) : "cc");
	printf("repe scasb: at %ld, left %lu, equal %d\n", (long)((unsigned char *)di - b), c, z);
	memcpy(b, a, 256);
	b[150]++;
	di = b;
	si = a;
	c = 256;
	__asm__ volatile("repe cmpsb\n sete %3\n setb %4" : "+D"(di), "+S"(si), "+c"(c), "=q"(z), "=q"(below) : : "cc");
	printf("cmpsb: at %ld, left %lu, equal %d, below %d\n", (long)((unsigned char *)di - b), c, z, below);
	di = b;
	si = a;
	c = 0;
	__asm__ volatile("xor %%eax, %%eax\n stc\n repe cmpsb\n sete %3\n setb %4"
			 : "+D"(di), "+S"(si), "+c"(c), "=q"(z), "=q"(below)
			 :
			 : "cc", "rax");
	printf("no count: flags kept %d %d\n", z, below);
	// With an address-size prefix the count is ECX.
	di = b;
	c = 0x100000003;
	unsigned char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(low != MAP_FAILED);
	di = low;
	__asm__ volatile("addr32 rep stosb" : "+D"(di), "+c"(c) : "a"(9) : "memory");
	printf("addr32: %d %d %d %d, left %lx\n", low[0], low[2], low[3], (int)((unsigned char *)di - low), c);

	// A fault in the middle: registers show the progress, and the instruction resumes.
	on_siginfo(SIGSEGV, repair, 0);
	page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
	di = page + 4000;
	c = 1000;
	__asm__ volatile("rep stosb" : "+D"(di), "+c"(c) : "a"(5) : "memory");
	printf("faults %d, left at the fault %lu, then %lu, %x\n", faults, left_at_fault, c, sum(page, 3 * 4096));
	CHECK(mprotect(page + 4096, 4096, PROT_NONE) == 0);
	faults = 0;
	unsigned char *to = malloc(8192);
	c = MOVS("q", "cld", to, page + 4000, 100);
	printf("faults %d, left at the fault %lu, then %lu, %x\n", faults, left_at_fault, c, sum(to, 800));
	free(to);
	return 0;
}
