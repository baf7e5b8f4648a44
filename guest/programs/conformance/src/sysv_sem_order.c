// Order of waiters at System V semaphores: simple and complex operations, waits for zero, removal, SETVAL.
#include "conformance.h"

#include <sys/ipc.h>
#include <sys/sem.h>

static int set;
static atomic_int *ended; // number of waits that have ended
static int *order;        // children in the order in which their waits ended
static int children;

static int waiting(void)
{
	int n = 0;
	for (int i = 0; i < 3; i++)
		n += semctl(set, i, GETNCNT) + semctl(set, i, GETZCNT);
	return n;
}

// waits starts a child whose operations must wait.
static void waits(struct sembuf *ops, int n)
{
	int before = waiting(), name = children++;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int r = semop(set, ops, n);
		order[atomic_fetch_add(ended, 1)] = r == 0 ? name : -errno;
		_exit(0);
	}
	while (waiting() == before)
		nap();
}

static void simple(int n, int change)
{
	struct sembuf op = {n, change, 0};
	waits(&op, 1);
}

static void does(int n, int change)
{
	struct sembuf op = {n, change, 0};
	CHECK(semop(set, &op, 1) == 0);
}

// settle waits until n waits have ended and prints which children may continue; the
// order of those that continue at once is not fixed.
static void settle(const char *what, int n)
{
	while (atomic_load(ended) < n)
		nap();
	unsigned short v[3];
	CHECK(semctl(set, 0, GETALL, v) == 0);
	printf("%s: values %d %d %d, waiting %d/%d %d/%d %d/%d, served", what, v[0], v[1], v[2], semctl(set, 0, GETNCNT),
	       semctl(set, 0, GETZCNT), semctl(set, 1, GETNCNT), semctl(set, 1, GETZCNT), semctl(set, 2, GETNCNT),
	       semctl(set, 2, GETZCNT));
	for (int c = 0; c < children; c++)
		for (int i = 0; i < n; i++)
			if (order[i] == c)
				printf(" %d", c);
	for (int i = 0; i < n; i++)
		if (order[i] < 0)
			printf(" %s", errname(-order[i]));
	printf("\n");
}

static void begin(int a, int b, int c)
{
	unsigned short v[3] = {a, b, c};
	atomic_store(ended, 0);
	children = 0;
	set = semget(IPC_PRIVATE, 3, 0600);
	CHECK(set >= 0 && semctl(set, 0, SETALL, v) == 0);
}

static void end(int left)
{
	CHECK(semctl(set, 0, IPC_RMID) == 0);
	while (atomic_load(ended) < children)
		nap();
	int n = 0;
	for (int i = 0; i < children; i++)
		n += order[i] == -EIDRM;
	printf("removed: %d of %d got EIDRM\n", n, left);
	while (wait(NULL) > 0)
		;
}

int main(void)
{
	ended = shared_memory(4096);
	order = (int *)ended + 16;

	// Two simple decrements in order; an earlier, greater one does not block them.
	begin(0, 0, 0);
	simple(0, -3);
	simple(0, -1);
	simple(0, -2);
	settle("three wait", 0);
	does(0, 1);
	settle("up 1", 1);
	does(0, 2);
	settle("up 2", 2);
	does(0, 3);
	settle("up 3", 3);
	end(0);

	// Waits for zero are served before decrements.
	begin(1, 0, 0);
	simple(0, 0);
	simple(0, -2);
	does(0, -1);
	settle("zero", 1);
	end(1);

	// A complex operation that waits first, then simple ones.
	begin(0, 0, 0);
	struct sembuf both[] = {{0, -1, 0}, {1, -1, 0}}, higher[] = {{0, -2, 0}, {2, 1, 0}}, chain[] = {{0, 0, 0}, {1, 1, 0}};
	waits(both, 2);
	simple(0, -1);
	simple(1, -1);
	does(0, 1);
	settle("complex: up 0", 1);
	does(1, 1);
	settle("complex: up 1", 2);
	does(0, 1);
	settle("complex: up 0 again", 2);
	does(1, 1);
	settle("complex: up 1 again", 3);
	end(0);

	// One operation makes the next possible.
	begin(1, 0, 0);
	waits(chain, 2);
	simple(1, -1);
	waits(higher, 2);
	settle("chain", 0);
	does(0, -1);
	settle("chain runs", 2);
	does(0, 2);
	settle("higher", 3);
	end(0);

	// Simple waiters keep their order when a complex one starts and stops waiting.
	begin(0, 0, 0);
	simple(2, -1);
	simple(1, -1);
	waits(both, 2);
	simple(2, -1);
	does(2, 1);
	settle("mixed: up 2", 1);
	does(1, 1);
	settle("mixed: up 1", 2);
	end(2);

	// SETVAL and SETALL wake waiters, too.
	begin(0, 0, 0);
	simple(0, -5);
	simple(1, -1);
	waits(both, 2);
	CHECK(semctl(set, 0, SETVAL, 6) == 0);
	settle("SETVAL", 1);
	CHECK(semctl(set, 0, SETALL, (unsigned short[]){1, 2, 3}) == 0);
	settle("SETALL", 3);
	end(0);

	// An operation that would be out of range when its turn is reached.
	begin(0, 32767, 0);
	struct sembuf over[] = {{0, -1, 0}, {1, 1, 0}};
	waits(over, 2);
	simple(0, -1);
	does(0, 1);
	settle("out of range", 2);
	end(0);
	return 0;
}
