// System V semaphores: semget, semop, all commands of semctl, limits and errors.
#include "conformance.h"

#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/time.h>

static int set;

/* glibc's semop makes the call semtimedop. */
static int op1(int n, int change, int flags)
{
	struct sembuf op = {n, change, flags};
	return syscall(SYS_semop, set, &op, 1);
}

static void show_values(void)
{
	unsigned short v[16];
	struct semid_ds d;
	CHECK(semctl(set, 0, IPC_STAT, &d) == 0 && d.sem_nsems <= LEN(v));
	CHECK(semctl(set, 0, GETALL, v) == 0);
	printf("values");
	for (unsigned i = 0; i < d.sem_nsems; i++)
		printf(" %d", v[i]);
	printf(", used %d, changed %d, mode %o\n", d.sem_otime != 0, d.sem_ctime != 0, d.sem_perm.mode);
}

static void getting(void)
{
	key_t key = getpid() | 0x53000000;
	SHOW(semget(key, 1, 0600));
	SHOW(semget(key, 0, IPC_CREAT | 0600));
	SHOW(semget(key, -1, IPC_CREAT | 0600));
	SHOW(semget(key, 32001, IPC_CREAT | 0600));
	set = semget(key, 3, IPC_CREAT | IPC_EXCL | 0600);
	CHECK(set >= 0);
	SHOW(semget(key, 3, IPC_CREAT | IPC_EXCL | 0600));
	SHOW(semget(key, 4, 0));
	SHOW(semget(key, 2, 0) == set);
	SHOW(semget(key, 0, 0) == set);
	show_values();
}

static void control(void)
{
	SHOW(semctl(set, 1, SETVAL, 5));
	show_values();
	SHOW(semctl(set, 1, GETVAL));
	SHOW(semctl(set, 1, GETPID) == getpid());
	SHOW(semctl(set, 0, GETPID));
	SHOW(semctl(set, 1, GETNCNT));
	SHOW(semctl(set, 1, GETZCNT));
	SHOW(semctl(set, 3, GETVAL));
	SHOW(semctl(set, -1, GETVAL));
	SHOW(semctl(set, 3, SETVAL, 1));
	SHOW(semctl(set, 0, SETVAL, -1));
	SHOW(semctl(set, 0, SETVAL, 32768));
	SHOW(semctl(set, 0, SETVAL, 32767));
	SHOW(semctl(set, 0, SETALL, (unsigned short[]){1, 2, 32768}));
	SHOW(semctl(set, 0, SETALL, (unsigned short[]){1, 2, 3}));
	show_values();
	SHOW(semctl(set, 2, GETPID) == getpid());
	SHOW(semctl(set, 0, SETALL, (void *)8));
	SHOW(semctl(set, 0, GETALL, (void *)8));
	SHOW(semctl(set, 0, IPC_STAT, (void *)8));
	SHOW(semctl(set, 0, IPC_SET, (void *)8));
	SHOW(semctl(set, 0, 99));
	SHOW(semctl(-1, 0, GETVAL));
	struct semid_ds d;
	CHECK(semctl(set, 0, IPC_STAT, &d) == 0);
	d.sem_perm.mode = 0777;
	SHOW(semctl(set, 0, IPC_SET, &d));
	show_values();
	struct seminfo l, u;
	CHECK(semctl(0, 0, IPC_INFO, &l) >= 0);
	printf("limits %d %d %d %d %d %d %d %d %d %d\n", l.semmap, l.semmni, l.semmns, l.semmnu, l.semmsl, l.semopm, l.semume,
	       l.semusz, l.semvmx, l.semaem);
	int highest = semctl(0, 0, SEM_INFO, &u), found = 0;
	CHECK(u.semusz >= 1 && u.semaem >= 3 && u.semmni == l.semmni);
	for (int i = 0; i <= highest; i++)
		found += semctl(i, 0, SEM_STAT, &d) == set;
	printf("found by index: %d\n", found);
	CHECK(semctl(set % 32768, 0, SEM_STAT_ANY, &d) == set);
}

static void operations(void)
{
	SHOW(semctl(set, 0, SETALL, (unsigned short[]){1, 2, 3}));
	SHOW(op1(0, 1, 0));
	SHOW(op1(0, -2, 0));
	SHOW(op1(0, 0, 0));
	SHOW(op1(0, -1, IPC_NOWAIT));
	SHOW(op1(1, 0, IPC_NOWAIT));
	SHOW(op1(3, 1, 0));
	SHOW(op1(1, 32766, 0));
	SHOW(op1(1, 32765, 0));
	SHOW(op1(1, -32767, 0));
	show_values();
	struct sembuf ops[501] = {{0, 1, 0}, {2, -3, 0}, {2, 0, 0}, {1, 7, 0}};
	SHOW(semop(set, ops, 4));
	show_values();
	// All or nothing: the last of these operations is impossible.
	struct sembuf undo_me[] = {{0, -1, 0}, {1, -7, 0}, {2, 2, 0}, {2, -3, IPC_NOWAIT}};
	SHOW(semop(set, undo_me, 4));
	show_values();
	// The same semaphore several times: 1 -> 3 -> 0 -> 4.
	struct sembuf same[] = {{0, 2, 0}, {0, -3, 0}, {0, 0, 0}, {0, 4, 0}};
	SHOW(semop(set, same, 4));
	show_values();
	struct sembuf range[] = {{1, 3, 0}, {2, 32767, 0}, {2, 1, 0}};
	SHOW(semop(set, range, 3));
	show_values();
	SHOW(semop(set, ops, 0));
	SHOW(semop(set, ops, 501));
	for (int i = 0; i < 500; i++)
		ops[i] = (struct sembuf){2, 1, 0};
	SHOW(semop(set, ops, 500));
	show_values();
	SHOW(semop(set, (void *)8, 1));
	SHOW(semop(-1, ops, 1));
	SHOW(semop(-1, (void *)8, 1));
	SHOW(semop(1 << 30, ops, 1));
	for (int i = 0; i < 3; i++)
		SHOW(semctl(set, i, GETPID) == getpid());
}

static void timeouts(void)
{
	SHOW(semctl(set, 0, SETALL, (unsigned short[]){0, 1, 0}));
	struct sembuf down = {0, -1, 0}, zero = {1, 0, 0}, up = {0, 1, 0};
	struct timespec t = {0, 3 * MSEC}, none = {0, 0}, bad = {0, SEC}, negative = {-1, 0};
	int64_t begin = now(CLOCK_MONOTONIC);
	SHOW(semtimedop(set, &down, 1, &t));
	CHECK(now(CLOCK_MONOTONIC) - begin >= 3 * MSEC);
	SHOW(semtimedop(set, &zero, 1, &t));
	SHOW(semtimedop(set, &down, 1, &none));
	SHOW(semtimedop(set, &down, 1, &bad));
	SHOW(semtimedop(set, &up, 1, &bad));
	SHOW(semtimedop(set, &up, 1, &negative));
	SHOW(semtimedop(set, &up, 0, &bad));
	SHOW(semtimedop(set, &up, 1, (void *)8));
	SHOW(semtimedop(set, &up, 1, &none));
	SHOW(semtimedop(set, &down, 1, &t));
	SHOW(semctl(set, 0, GETNCNT));
	SHOW(semctl(set, 1, GETZCNT));
	show_values();
}

static volatile sig_atomic_t got;

static void on_alarm(int sig) { got = sig; }

static void signals(void)
{
	struct itimerval in = {{0, 4000}, {0, 4000}};
	for (int restart = 0; restart < 2; restart++) {
		on_signal(SIGALRM, on_alarm, restart ? SA_RESTART : 0);
		got = 0;
		CHECK(setitimer(ITIMER_REAL, &in, NULL) == 0);
		SHOW(op1(0, -1, 0));
		CHECK(got == SIGALRM);
	}
	struct itimerval none = {{0, 0}, {0, 0}};
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	SHOW(semctl(set, 0, GETNCNT));
}

int main(void)
{
	getting();
	control();
	operations();
	timeouts();
	signals();
	SHOW(semctl(set, 0, IPC_RMID));
	SHOW(semctl(set, 0, IPC_RMID));
	SHOW(op1(0, 1, 0));
	SHOW(semctl(set, 0, GETVAL));
	return 0;
}
