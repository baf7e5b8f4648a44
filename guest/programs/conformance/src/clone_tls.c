// CLONE_SETTLS directly: a thread without libc on thread-local storage of its own, its id stored and cleared, bad bases refused.
#include "conformance.h"

#include <linux/futex.h>

static struct { void *self; long value; } block[2];
static atomic_int parent_tid, child_tid, seen_tid;
static atomic_long seen;
static void *seen_self;

// The child may call nothing that uses errno.
static int child(void *arg)
{
	void *self;
	long value;
	__asm__ volatile("mov %%fs:0, %0\n\tmov %%fs:8, %1" : "=r"(self), "=r"(value));
	seen_self = self;
	seen = value + (long)arg;
	seen_tid = child_tid;
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"((long)SYS_exit), "D"(0L) : "rcx", "r11", "memory");
	return 0;
}

int main(void)
{
	const int thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		block[i].self = &block[i];
		block[i].value = 40 + i;
		child_tid = parent_tid = -1;
		int tid = clone(child, stack + 65536, thread | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
				(void *)2L, &parent_tid, &block[i], &child_tid);
		CHECK(tid > 0 && parent_tid == tid);
		for (int t; (t = child_tid) != 0;)
			syscall(SYS_futex, &child_tid, FUTEX_WAIT, t, NULL, NULL, 0);
		CHECK(seen_tid == tid);
		printf("%d: own block %d, %ld\n", i, seen_self == &block[i], (long)seen);
	}
	SHOW(clone(child, stack + 65536, thread | CLONE_SETTLS, NULL, &parent_tid, (void *)(1UL << 47), &child_tid));
	SHOW(clone(child, stack + 65536, CLONE_THREAD, NULL, &parent_tid, NULL, &child_tid));
	return 0;
}
