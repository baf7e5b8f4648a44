// System V shared memory: shmget, shmat, shmdt, sizes, keys, sharing with children, removal while attached.
#include "conformance.h"

#include <sys/ipc.h>
#include <sys/shm.h>

#define PAGE 4096

static key_t key; // of this process alone

static struct shmid_ds stat_of(int id)
{
	struct shmid_ds d;
	CHECK(shmctl(id, IPC_STAT, &d) == 0);
	return d;
}

static void show_stat(const char *when, int id)
{
	struct shmid_ds d = stat_of(id);
	printf("%s: size %zu, mode %o, attached %lu, key %s, created by %s, last %s, times %d %d %d\n", when, d.shm_segsz,
	       d.shm_perm.mode, (unsigned long)d.shm_nattch, d.shm_perm.__key == key ? "mine" : d.shm_perm.__key == 0 ? "private" : "?",
	       d.shm_cpid == getpid() ? "me" : "another", d.shm_lpid == getpid() ? "me" : d.shm_lpid == 0 ? "none" : "another",
	       d.shm_atime != 0, d.shm_dtime != 0, d.shm_ctime != 0);
	CHECK(d.shm_perm.uid == geteuid() && d.shm_perm.gid == getegid() && d.shm_perm.cuid == geteuid() && d.shm_perm.cgid == getegid());
}

static void getting(void)
{
	SHOW(shmget(key, 100, 0600));
	SHOW(shmget(key, 0, IPC_CREAT | 0600));
	SHOW(shmget(IPC_PRIVATE, 0, 0600));
	SHOW(shmget(IPC_PRIVATE, -1, 0600));
	SHOW(shmget(IPC_PRIVATE, 1L << 62, 0600));
	int id = shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0640);
	CHECK(id >= 0);
	show_stat("new", id);
	SHOW(shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0640));
	SHOW(shmget(key, 5001, 0));
	SHOW(shmget(key, 8192, 0));
	SHOW(shmget(key, 5000, 0) == id);
	SHOW(shmget(key, 0, 0) == id);
	SHOW(shmget(key, 4000, IPC_CREAT | 0600) == id);
	char *p = shmat(id, NULL, 0);
	CHECK(p != (char *)-1 && (uintptr_t)p % PAGE == 0);
	show_stat("attached", id);
	for (int i = 0; i < 2 * PAGE; i++)
		CHECK(p[i] == 0);
	strcpy(p, "hello");
	p[2 * PAGE - 1] = 1; // the size is rounded up to pages
	char *q = shmat(id, NULL, SHM_RDONLY);
	CHECK(q != (char *)-1 && q != p);
	printf("second: %s, %d\n", q, q[2 * PAGE - 1]);
	show_stat("twice", id);
	SHOW(shmdt(p + 1));
	SHOW(shmdt(p + PAGE));
	SHOW(shmdt(p));
	SHOW(shmdt(p));
	show_stat("detached one", id);
	printf("still: %s\n", q);
	SHOW(shmdt(q));
	p = shmat(id, NULL, 0);
	printf("kept while nobody has it: %s\n", p);
	SHOW(shmctl(id, IPC_RMID, NULL));
	show_stat("removed", id);
	SHOW(shmget(key, 0, 0));
	int other = shmget(key, 100, IPC_CREAT | 0600);
	CHECK(other >= 0 && other != id);
	SHOW(shmctl(other, IPC_RMID, NULL));
	q = shmat(id, NULL, 0);
	printf("attached after its removal: %s\n", q);
	SHOW(shmdt(p));
	SHOW(shmctl(id, IPC_RMID, NULL));
	SHOW(shmdt(q));
	SHOW(shmctl(id, IPC_STAT, &(struct shmid_ds){0}));
	SHOW((long)shmat(id, NULL, 0));
	SHOW(shmctl(id, IPC_RMID, NULL));
	SHOW(shmctl(other, IPC_RMID, NULL));
	SHOW((long)shmat(-1, NULL, 0));
	SHOW(shmctl(-1, IPC_RMID, NULL));
	SHOW(shmctl(id, 999, NULL));
	SHOW(shmctl(id, -1, NULL));
}

static void children(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	atomic_int *p = shmat(id, NULL, 0);
	CHECK(p != (void *)-1);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		show_stat("in the child", id);
		p[0] = 1;
		while (p[1] == 0)
			nap();
		_exit(0);
	}
	while (p[0] == 0)
		nap();
	show_stat("with a child", id);
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
	CHECK(shmdt(p) == 0);
	p = shmat(id, NULL, 0); // the child has it
	p[1] = 1;
	printf("child: %s\n", status_text(wait_for(pid)));
	show_stat("after the child", id);
	CHECK(shmdt(p) == 0);
	SHOW(shmctl(id, IPC_RMID, NULL));

	id = shmget(IPC_PRIVATE, PAGE, 0600);
	p = shmat(id, NULL, 0);
	pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	printf("exec: %s\n", status_text(wait_for(pid)));
	show_stat("after exec", id);
	pid = fork();
	if (pid == 0)
		raise(SIGKILL);
	printf("killed: %s\n", status_text(wait_for(pid)));
	show_stat("after a death", id);
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
	CHECK(shmdt(p) == 0);
}

static void bad_memory(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	SHOW(shmctl(id, IPC_STAT, (void *)8));
	SHOW(shmctl(id, IPC_SET, (void *)8));
	SHOW(shmctl(0, IPC_INFO, (void *)8));
	SHOW(shmctl(0, SHM_INFO, (void *)8));
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
}

static void setting(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	struct shmid_ds d = stat_of(id);
	d.shm_perm.mode = 07644;
	SHOW(shmctl(id, IPC_SET, &d));
	printf("mode %o\n", stat_of(id).shm_perm.mode);
	d.shm_perm.uid = -1;
	SHOW(shmctl(id, IPC_SET, &d));
	SHOW(shmctl(id, SHM_LOCK, NULL));
	printf("mode %o\n", stat_of(id).shm_perm.mode);
	SHOW(shmctl(id, SHM_UNLOCK, NULL));
	printf("mode %o\n", stat_of(id).shm_perm.mode);
	struct shm_info u;
	struct shminfo l;
	CHECK(shmctl(0, SHM_INFO, (void *)&u) >= 0);
	CHECK(u.used_ids >= 1 && u.shm_tot >= 1 && u.swap_attempts == 0);
	CHECK(shmctl(0, IPC_INFO, (void *)&l) >= 0);
	printf("max %lx, min %lu, segments %lu %lu, all %lx\n", l.shmmax, l.shmmin, l.shmmni, l.shmseg, l.shmall);
	int highest = shmctl(0, SHM_INFO, (void *)&u), found = 0;
	for (int i = 0; i <= highest; i++)
		if (shmctl(i, SHM_STAT, &d) == id)
			found++;
	printf("found by index: %d\n", found);
	CHECK(shmctl(id % 32768, SHM_STAT_ANY, &d) == id);
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
}

int main(void)
{
	key = getpid() | 0x51000000;
	getting();
	children();
	bad_memory();
	setting();
	return 0;
}
