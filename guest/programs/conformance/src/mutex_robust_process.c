// Robust process-shared mutex: the owner process exits or is killed; the parent recovers it.
#include "conformance.h"

struct shared {
	pthread_mutex_t mu;
	atomic_int held;
	int value;
};

static struct shared *s;

static pid_t holder(bool stay)
{
	s->held = 0;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		OK(pthread_mutex_lock(&s->mu));
		s->value++;
		s->held = 1;
		while (stay)
			pause();
		_exit(0);
	}
	return pid;
}

int main(void)
{
	s = shared_memory(sizeof *s);
	pthread_mutexattr_t a;
	OK(pthread_mutexattr_init(&a));
	OK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	OK(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	OK(pthread_mutex_init(&s->mu, &a));

	pid_t pid = holder(false);
	printf("first child: %s\n", status_text(wait_for(pid)));
	SHOWE(pthread_mutex_lock(&s->mu));
	SHOWE(pthread_mutex_consistent(&s->mu));
	SHOWE(pthread_mutex_unlock(&s->mu));

	pid = holder(true);
	while (!s->held)
		nap();
	SHOWE(pthread_mutex_trylock(&s->mu));
	CHECK(kill(pid, SIGKILL) == 0);
	// Blocks until the kernel has torn the child down.
	SHOWE(pthread_mutex_lock(&s->mu));
	printf("second child: %s\n", status_text(wait_for(pid)));
	SHOWE(pthread_mutex_consistent(&s->mu));
	SHOWE(pthread_mutex_unlock(&s->mu));
	printf("value %d\n", s->value);
	return 0;
}
