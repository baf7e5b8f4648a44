// Process-shared semaphores: three child processes and the parent as producers and consumer.
#include "conformance.h"

#include <semaphore.h>

struct shared {
	sem_t slots, items, lock;
	int buf[4];
	int in, out;
};

int main(void)
{
	struct shared *s = shared_memory(sizeof *s);
	CHECK(sem_init(&s->slots, 1, LEN(s->buf)) == 0);
	CHECK(sem_init(&s->items, 1, 0) == 0);
	CHECK(sem_init(&s->lock, 1, 1) == 0);
	pid_t pid[3];
	for (int i = 0; i < LEN(pid); i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] != 0)
			continue;
		for (int k = 1; k <= 50; k++) {
			CHECK(sem_wait(&s->slots) == 0);
			CHECK(sem_wait(&s->lock) == 0);
			s->buf[s->in++ % LEN(s->buf)] = k;
			CHECK(sem_post(&s->lock) == 0);
			CHECK(sem_post(&s->items) == 0);
		}
		_exit(i);
	}
	int sum = 0;
	for (int k = 0; k < 150; k++) {
		CHECK(sem_wait(&s->items) == 0);
		CHECK(sem_wait(&s->lock) == 0);
		sum += s->buf[s->out++ % LEN(s->buf)];
		CHECK(sem_post(&s->lock) == 0);
		CHECK(sem_post(&s->slots) == 0);
	}
	for (int i = 0; i < LEN(pid); i++)
		printf("child %d: %s\n", i, status_text(wait_for(pid[i])));
	printf("sum %d\n", sum);
	return 0;
}
