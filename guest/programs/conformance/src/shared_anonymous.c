// Shared anonymous memory: one counter of four processes and their children, by atomics, without locks.
#include "conformance.h"

struct shared {
	atomic_long total;
	_Atomic(uint32_t) ticket, serving;
	int guarded;
};

static void work(struct shared *s)
{
	for (int i = 0; i < 50; i++) {
		s->total++;
		uint32_t mine = s->ticket++;
		while (s->serving != mine)
			sched_yield();
		s->guarded++;
		s->serving++;
	}
}

int main(void)
{
	struct shared *s = shared_memory(sizeof *s);
	pid_t pid[4];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] != 0)
			continue;
		pid_t child = fork();
		CHECK(child >= 0);
		work(s);
		if (child != 0)
			CHECK(wait_for(child) == 0);
		_exit(0);
	}
	for (int i = 0; i < LEN(pid); i++)
		CHECK(wait_for(pid[i]) == 0);
	printf("total %ld, guarded %d, tickets %u\n", s->total, s->guarded, s->ticket);
	return 0;
}
