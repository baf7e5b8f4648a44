/* Threads made by clone(2) itself. Their ends are waited for at the words that the kernel clears. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <linux/futex.h>
static int tid[4], counter, sum;
static int run(void *a) {
	for (int i = 0; i < 1000; i++) __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
	sum += (int)(long)a;
	return 0;
}
int main(void) {
	for (int i = 0; i < 4; i++) {
		char *stack = malloc(65536);
		tid[i] = 1;
		clone(run, stack + 65536, CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_PARENT_SETTID|CLONE_CHILD_CLEARTID, (void *)(long)i, &tid[i], 0, &tid[i]);
	}
	for (int i = 0; i < 4; i++)
		for (int v; (v = __atomic_load_n(&tid[i], __ATOMIC_SEQ_CST)); ) syscall(SYS_futex, &tid[i], FUTEX_WAIT, v, 0, 0, 0);
	printf("%d %d\n", counter, sum);
	return 0;
}
