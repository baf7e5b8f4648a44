// POSIX shared memory objects: shm_open, sizes, two processes, unlink while mapped, names that are refused.
// link: -lrt
#include "conformance.h"

struct shared {
	atomic_int turn;
	int log[20];
	int n;
};

static void play(struct shared *s, int me)
{
	for (int i = 0; i < 10; i++) {
		while (s->turn != me)
			sched_yield();
		s->log[s->n++] = me;
		s->turn = !me;
	}
}

int main(void)
{
	char name[64];
	snprintf(name, sizeof name, "/heddle-conformance-shm-%d", (int)getpid());
	SHOW(shm_open(name, O_RDWR, 0));
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	SHOW(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
	CHECK(ftruncate(fd, sizeof(struct shared)) == 0);
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("size right %d, mode %o\n", st.st_size == sizeof(struct shared), st.st_mode);
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(s != MAP_FAILED);

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int mine = shm_open(name, O_RDWR, 0);
		CHECK(mine >= 0);
		struct shared *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, mine, 0);
		CHECK(c != MAP_FAILED && c != s);
		play(c, 1);
		_exit(0);
	}
	play(s, 0);
	printf("child: %s\n", status_text(wait_for(pid)));
	for (int i = 0; i < s->n; i++)
		printf("%d", s->log[i]);
	printf("\n");
	SHOW(shm_unlink(name));
	SHOW(shm_unlink(name));
	SHOW(shm_open(name, O_RDWR, 0));
	printf("still mapped: %d\n", s->n);
	SHOW(shm_open("/a/b", O_RDWR | O_CREAT, 0600));
	return 0;
}
