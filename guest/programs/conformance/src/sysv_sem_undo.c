// SEM_UNDO: at exit, death, exec and thread end, with SETVAL, out of bounds, and waiters that it wakes.
#include "conformance.h"

#include <sys/ipc.h>
#include <sys/sem.h>

static int set;

static int op(int n, int change)
{
	struct sembuf o = {n, change, SEM_UNDO};
	return semop(set, &o, 1);
}

static void show(const char *when)
{
	unsigned short v[3];
	CHECK(semctl(set, 0, GETALL, v) == 0);
	printf("%s: %d %d %d\n", when, v[0], v[1], v[2]);
}

static void reset(int a, int b, int c)
{
	CHECK(semctl(set, 0, SETALL, (unsigned short[]){a, b, c}) == 0);
}

static void child(const char *what, void (*f)(void))
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		f();
		_exit(0);
	}
	printf("%s, %s, ", what, status_text(wait_for(pid)));
	show("values");
}

static void adjusts(void)
{
	CHECK(op(0, 3) == 0 && op(1, -2) == 0 && op(0, 1) == 0);
	struct sembuf two[] = {{2, 5, SEM_UNDO}, {2, -1, 0}};
	CHECK(semop(set, two, 2) == 0);
	show("in the child");
}

static void dies(void)
{
	CHECK(op(0, 3) == 0 && op(1, -2) == 0);
	raise(SIGKILL);
}

static void execs(void)
{
	CHECK(op(0, 3) == 0 && op(1, -2) == 0);
	execl("/bin/true", "true", NULL);
}

static void forks(void)
{
	CHECK(op(0, 3) == 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0); // a child does not inherit the adjustments
	wait_for(pid);
	show("after the grandchild");
}

static void *in_thread(void *arg)
{
	(void)arg;
	CHECK(op(0, 3) == 0);
	return NULL;
}

static void threads(void)
{
	finish(start(in_thread, NULL));
	show("after the thread"); // threads share the adjustments
}

static void sets(void)
{
	CHECK(op(0, 3) == 0 && op(1, -2) == 0);
	CHECK(semctl(set, 0, SETVAL, 7) == 0); // clears the adjustment of this semaphore
}

static void sets_all(void)
{
	CHECK(op(0, 3) == 0 && op(1, -2) == 0);
	reset(7, 7, 7);
}

static void taken_away(void)
{
	CHECK(op(0, 3) == 0);
	struct sembuf o = {0, -5, 0};
	CHECK(semop(set, &o, 1) == 0); // the adjustment would make the value negative
}

static void too_much(void)
{
	CHECK(op(0, -3) == 0);
	struct sembuf o = {0, 32765, 0};
	CHECK(semop(set, &o, 1) == 0); // the adjustment would exceed the maximum
}

static void adjustments_range(void)
{
	reset(0, 0, 0);
	SHOW(op(0, 32767));
	SHOW(semctl(set, 0, GETVAL));
	struct sembuf o = {0, -32767, 0};
	SHOW(semop(set, &o, 1));
	SHOW(op(0, 1));
	SHOW(op(0, 1));
	SHOW(semctl(set, 0, GETVAL));
	SHOW(op(1, 0));
}

static void waiters(void)
{
	reset(0, 0, 0);
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t holder = fork();
	if (holder == 0) {
		CHECK(op(1, 1) == 0 && op(1, -1) == 0); // no adjustment is left
		struct sembuf o = {0, 2, 0};
		CHECK(semop(set, &o, 1) == 0 && op(0, -2) == 0);
		CHECK(write(fd[1], "x", 1) == 1);
		pause();
	}
	char c;
	CHECK(read(fd[0], &c, 1) == 1);
	pid_t waiter = fork();
	if (waiter == 0) {
		struct sembuf o = {0, -1, 0};
		SHOW(semop(set, &o, 1));
		_exit(0);
	}
	while (semctl(set, 0, GETNCNT) == 0)
		nap();
	CHECK(kill(holder, SIGTERM) == 0);
	int status = wait_for(holder);
	printf("waiter: %s\n", status_text(wait_for(waiter)));
	printf("holder: %s\n", status_text(status));
	show("values");
	SHOW(semctl(set, 0, GETPID) == waiter);
}

static void removed(void)
{
	CHECK(op(0, 1) == 0);
	CHECK(semctl(set, 0, IPC_RMID) == 0);
	set = semget(IPC_PRIVATE, 3, 0600);
	SHOW(op(0, 1));
}

int main(void)
{
	set = semget(IPC_PRIVATE, 3, 0600);
	CHECK(set >= 0);
	struct { const char *what; void (*f)(void); } cases[] = {
		{"exit", adjusts}, {"death", dies}, {"exec", execs}, {"fork", forks}, {"threads", threads}, {"SETVAL", sets},
		{"SETALL", sets_all}, {"taken away", taken_away}, {"too much", too_much}, {"range", adjustments_range},
	};
	for (int i = 0; i < LEN(cases); i++) {
		reset(5, 5, 5);
		child(cases[i].what, cases[i].f);
	}
	waiters();
	int old = set;
	pid_t pid = fork();
	if (pid == 0) {
		removed();
		CHECK(semctl(set, 0, IPC_RMID) == 0);
		_exit(0);
	}
	printf("removed: %s\n", status_text(wait_for(pid)));
	set = old;
	SHOW(semctl(set, 0, GETVAL));
	return 0;
}
