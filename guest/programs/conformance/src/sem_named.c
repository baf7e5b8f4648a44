// Named semaphores: sem_open with each flag, two processes, unlink while open, names that are refused.
#include "conformance.h"

#include <semaphore.h>

int main(void)
{
	char name[64];
	snprintf(name, sizeof name, "/heddle-conformance-%d", (int)getpid());
	SHOW(sem_open(name, 0) == SEM_FAILED ? -1 : 0);
	sem_t *s = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	CHECK(s != SEM_FAILED);
	SHOW(sem_open(name, O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED ? -1 : 0);
	sem_t *again = sem_open(name, 0);
	printf("same: %d\n", again == s);
	SHOW(sem_close(again));

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		sem_t *c = sem_open(name, 0);
		CHECK(c != SEM_FAILED);
		for (int i = 0; i < 3; i++)
			CHECK(sem_post(c) == 0);
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		CHECK(sem_wait(s) == 0);
	CHECK(wait_for(pid) == 0);
	SHOW(sem_trywait(s));
	SHOW(sem_unlink(name));
	SHOW(sem_unlink(name));
	SHOW(sem_post(s));
	SHOW(sem_trywait(s));
	SHOW(sem_close(s));
	SHOW(sem_open("/a/b", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0);
	SHOW(sem_open("/", O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0);
	return 0;
}
