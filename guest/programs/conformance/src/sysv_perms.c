// Permissions of System V objects: operations allowed to owners without privileges, and to others.
#include "conformance.h"

#include <grp.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int seg, set, queue;

static void make(int mode)
{
	seg = shmget(IPC_PRIVATE, 4096, mode);
	set = semget(IPC_PRIVATE, 2, mode);
	queue = msgget(IPC_PRIVATE, mode);
	CHECK(seg >= 0 && set >= 0 && queue >= 0);
}

static void drop(void)
{
	CHECK(shmctl(seg, IPC_RMID, NULL) == 0 && semctl(set, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
}

static const char *outcome(long r) { return r == -1 ? errname(errno) : "ok"; }

static void use(const char *who)
{
	struct shmid_ds d;
	struct semid_ds s;
	struct msqid_ds m;
	struct { long type; char text[8]; } text = {1, "x"};
	unsigned short values[2] = {0, 0};
	struct sembuf up = {0, 1, IPC_NOWAIT}, zero = {1, 0, IPC_NOWAIT};
	void *p = shmat(seg, NULL, 0);
	printf("%s: shmat %s", who, outcome((long)p));
	if (p != (void *)-1)
		shmdt(p);
	p = shmat(seg, NULL, SHM_RDONLY);
	printf(", read-only %s", outcome((long)p));
	if (p != (void *)-1)
		shmdt(p);
	p = shmat(seg, NULL, SHM_RDONLY | SHM_EXEC);
	printf(", executable %s", outcome((long)p));
	if (p != (void *)-1)
		shmdt(p);
	printf(", stat %s", outcome(shmctl(seg, IPC_STAT, &d)));
	printf(", stat any %s\n", outcome(shmctl(seg % 32768, SHM_STAT_ANY, &d) == seg ? 0 : -1));
	printf("%s: up %s", who, outcome(semop(set, &up, 1)));
	printf(", zero %s", outcome(semop(set, &zero, 1)));
	printf(", get %s", outcome(semctl(set, 0, GETVAL)));
	printf(", all %s", outcome(semctl(set, 0, GETALL, values)));
	printf(", set %s", outcome(semctl(set, 0, SETVAL, 0)));
	printf(", set all %s", outcome(semctl(set, 0, SETALL, (unsigned short[]){0, 0})));
	printf(", stat %s\n", outcome(semctl(set, 0, IPC_STAT, &s)));
	printf("%s: send %s", who, outcome(msgsnd(queue, &text, 1, IPC_NOWAIT)));
	printf(", receive %s", outcome(msgrcv(queue, &text, 8, 0, IPC_NOWAIT)));
	printf(", stat %s\n", outcome(msgctl(queue, IPC_STAT, &m)));
}

// keys checks shmget, semget and msgget of an object that exists.
static void keys(void)
{
	key_t key = getpid() | 0x52000000;
	int q = msgget(key, IPC_CREAT | 0400);
	CHECK(q >= 0);
	SHOW(msgget(key, 0) == q);
	SHOW(msgget(key, 0400) == q);
	SHOW(msgget(key, 0200));
	SHOW(msgget(key, 0004) == q);
	SHOW(msgget(key, 0002));
	SHOW(msgget(key, IPC_CREAT | 0600));
	CHECK(msgctl(q, IPC_RMID, NULL) == 0);
}

static void unprivileged(void)
{
	for (int mode = 0; mode <= 0600; mode += 0200) {
		char who[32];
		snprintf(who, sizeof who, "owner with %03o", mode);
		make(mode);
		use(who);
		drop();
	}
	make(0700);
	use("owner with 700");
	struct msqid_ds m;
	CHECK(msgctl(queue, IPC_STAT, &m) == 0);
	m.msg_qbytes = 16385;
	SHOW(msgctl(queue, IPC_SET, &m));
	m.msg_qbytes = 100;
	m.msg_perm.mode = 0;
	SHOW(msgctl(queue, IPC_SET, &m));
	SHOW(msgctl(queue, IPC_STAT, &m));
	drop();
	keys();
}

// others checks, as far as root can arrange it, the operations allowed to other users.
static void others(void)
{
	make(0640);
	struct shmid_ds d;
	CHECK(shmctl(seg, IPC_STAT, &d) == 0);
	d.shm_perm.uid = 4001;
	d.shm_perm.gid = 4002;
	CHECK(shmctl(seg, IPC_SET, &d) == 0);
	struct { uid_t uid; gid_t gid, group; int may_write, may_read, may_change; } cases[] = {
		{4001, 4009, 4009, 1, 1, 1}, {4003, 4002, 4002, 0, 1, 0}, {4003, 4009, 4002, 0, 1, 0}, {4003, 4009, 4009, 0, 0, 0},
	};
	for (int i = 0; i < LEN(cases); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			CHECK(setgroups(1, &cases[i].group) == 0 && setgid(cases[i].gid) == 0 && setuid(cases[i].uid) == 0);
			CHECK((shmat(seg, NULL, 0) != (void *)-1) == cases[i].may_write);
			CHECK((shmat(seg, NULL, SHM_RDONLY) != (void *)-1) == cases[i].may_read);
			CHECK((shmctl(seg, IPC_STAT, &d) == 0) == cases[i].may_read);
			d.shm_perm.uid = 4001, d.shm_perm.gid = 4002, d.shm_perm.mode = 0640;
			CHECK((shmctl(seg, IPC_SET, &d) == 0) == cases[i].may_change && (cases[i].may_change || errno == EPERM));
			CHECK(semctl(set, 0, IPC_RMID) == -1 && errno == EPERM);
			CHECK(msgctl(queue, IPC_RMID, NULL) == -1 && errno == EPERM);
			_exit(0);
		}
		CHECK(wait_for(pid) == 0);
	}
	drop();
}

int main(void)
{
	if (geteuid() == 0)
		others();
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0)
			CHECK(setgroups(0, NULL) == 0 && setgid(4711) == 0 && setuid(4711) == 0);
		unprivileged();
		_exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
	return 0;
}
