// CLONE_PARENT_SETTID, CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID: ids appear, and a futex wakes at the end.
#include "futex.h"

static atomic_uint parent_tid, child_tid;
static atomic_int ran;

static int body(void *arg)
{
	(void)arg;
	ran = 1;
	return 0;
}

int main(void)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	for (int i = 0; i < 5; i++) {
		ran = 0;
		child_tid = 0xffffffff;
		int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			    CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
		int tid = clone(body, stack + 65536, flags, NULL, &parent_tid, NULL, &child_tid);
		CHECK(tid > 0 && parent_tid == (unsigned)tid);
		unsigned c;
		// The kernel wakes the plain, shared futex.
		while ((c = child_tid) != 0) {
			CHECK(c == (unsigned)tid || c == 0xffffffff);
			futex(&child_tid, FUTEX_WAIT, c, NULL, NULL, 0);
		}
		CHECK(ran == 1);
		// The word is cleared a little before the thread is gone.
		while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
			sched_yield();
		CHECK(errno == ESRCH);
	}
	printf("five threads came and went\n");

	// A process that shares no memory leaves the word alone when it dies.
	atomic_uint *word = shared_memory(4096);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		*word = 7;
		CHECK(syscall(SYS_set_tid_address, word) == gettid());
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	printf("word %u\n", *word);
	return 0;
}
