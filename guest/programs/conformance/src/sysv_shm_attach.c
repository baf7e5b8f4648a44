// Where System V segments are attached: addresses, SHM_RND, SHM_REMAP, SHM_RDONLY, SHM_EXEC, partial unmapping, futexes.
#include "conformance.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#define PAGE 4096L

static sigjmp_buf back;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	siglongjmp(back, sig << 8 | info->si_code);
}

static const char *try_write(volatile char *p)
{
	static char text[32];
	int r = sigsetjmp(back, 1);
	if (r == 0) {
		*p = 1;
		return "written";
	}
	snprintf(text, sizeof text, "signal %s code %d", sigabbrev_np(r >> 8), r & 0xff);
	return text;
}

static unsigned long attached(int id)
{
	struct shmid_ds d;
	CHECK(shmctl(id, IPC_STAT, &d) == 0);
	return d.shm_nattch;
}

// show_at prints where shmat has attached relative to base.
static void show_at(const char *what, void *at, char *base)
{
	if (at == (void *)-1)
		printf("%s: %s\n", what, errname(errno));
	else
		printf("%s: %+ld\n", what, (char *)at - base);
}

static void lines_of_maps(int id)
{
	char name[64], line[512];
	int n = 0;
	snprintf(name, sizeof name, " %d ", id);
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f);
	while (fgets(line, sizeof line, f))
		if (strstr(line, "/SYSV")) {
			char rights[8], path[64], state[16];
			unsigned long offset, inode;
			CHECK(sscanf(line, "%*s %7s %lx %*s %lu %63s %15s", rights, &offset, &inode, path, state) == 5);
			CHECK(inode == (unsigned long)id);
			printf("  %s %lx %s %s\n", rights, offset, path, state);
			n++;
		}
	fclose(f);
	printf("  %d lines\n", n);
}

static void addresses(int id)
{
	char *base = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED);
	char *mid = base + 32 * PAGE;
	CHECK(munmap(mid, 16 * PAGE) == 0);
	show_at("free", shmat(id, mid, 0), base);
	show_at("taken", shmat(id, mid, 0), base);
	show_at("overlaps", shmat(id, mid - PAGE, 0), base);
	show_at("odd", shmat(id, mid + 5 * PAGE + 1, 0), base);
	show_at("rounded", shmat(id, mid + 5 * PAGE + 100, SHM_RND), base);
	show_at("remapped", shmat(id, mid - PAGE, SHM_REMAP), base);
	show_at("remapped, odd", shmat(id, base + 100, SHM_REMAP), base);
	show_at("remapped, rounded", shmat(id, base + 100, SHM_REMAP | SHM_RND), base);
	show_at("remapped nowhere", shmat(id, NULL, SHM_REMAP), base);
	show_at("too high", shmat(id, (void *)0x7ffffffff000, 0), base);
	show_at("kernel", shmat(id, (void *)0xffff800000000000, 0), base);
	show_at("wraps", shmat(id, (void *)0xfffffffffffff000, 0), base);
	show_at("end", shmat(id, (void *)0x7ffffffff000, SHM_REMAP), base);
	printf("attached %lu\n", attached(id));
	lines_of_maps(id);
	SHOW(shmdt(mid));
	SHOW(shmdt(mid - PAGE));
	SHOW(shmdt(mid + 5 * PAGE));
	SHOW(shmdt(base));
	printf("attached %lu\n", attached(id));
	CHECK(munmap(base, 64 * PAGE) == 0);
}

static void rights(int id)
{
	char *p = shmat(id, NULL, SHM_RDONLY);
	CHECK(p != (char *)-1);
	printf("read-only: %s\n", try_write(p));
	SHOW(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	SHOW(mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	CHECK(shmdt(p) == 0);
	p = shmat(id, NULL, SHM_EXEC);
	CHECK(p != (char *)-1);
	memcpy(p, "\xb8\x2a\x00\x00\x00\xc3", 6); // mov $42,%eax; ret
	printf("executed: %d\n", ((int (*)(void))(void *)p)());
	CHECK(shmdt(p) == 0);
	p = shmat(id, NULL, 0);
	SHOW(mprotect(p, PAGE, PROT_NONE));
	printf("protected: %s\n", try_write(p));
	printf("beside: %s\n", try_write(p + PAGE));
	printf("attached %lu\n", attached(id));
	SHOW(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	CHECK(shmdt(p) == 0);
	printf("detached: %s\n", try_write(p));
	printf("attached %lu\n", attached(id));
}

static void parts(int id)
{
	char *p = shmat(id, NULL, 0);
	CHECK(p != (char *)-1);
	CHECK(munmap(p + PAGE, PAGE) == 0);
	printf("a hole: attached %lu\n", attached(id));
	CHECK(munmap(p, PAGE) == 0);
	printf("no beginning: attached %lu\n", attached(id));
	SHOW(shmdt(p));
	printf("attached %lu\n", attached(id));
	p = shmat(id, NULL, 0);
	char *q = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p - 32 * PAGE);
	CHECK(q == p - 32 * PAGE);
	printf("moved: attached %lu\n", attached(id));
	SHOW(shmdt(p));
	SHOW(shmdt(q));
	p = shmat(id, NULL, 0);
	q = mremap(p, 0, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	strcpy(p, "twice");
	printf("%s: attached %lu\n", q, attached(id));
	CHECK(munmap(q, 2 * PAGE) == 0);
	CHECK(madvise(p, PAGE, MADV_DONTFORK) == 0);
	printf("split by advice: attached %lu\n", attached(id));
	pid_t pid = fork();
	if (pid == 0) {
		printf("in the child: attached %lu, first page: %s\n", attached(id), try_write(p));
		_exit(0);
	}
	wait_for(pid);
	CHECK(madvise(p, PAGE, MADV_DOFORK) == 0);
	SHOW(shmdt(p));
	printf("attached %lu\n", attached(id));
}

static void futexes(int id)
{
	int *word = shmat(id, NULL, 0), *other = shmat(id, NULL, 0);
	word[0] = 0;
	pid_t pid = fork();
	if (pid == 0) {
		while (syscall(SYS_futex, other, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINTR)
			;
		printf("woken, the word is %d\n", other[0]);
		_exit(0);
	}
	while (syscall(SYS_futex, word, FUTEX_CMP_REQUEUE, 0, 1, word, 0) == 0)
		nap();
	word[0] = 7;
	long woken = syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
	printf("child: %s\n", status_text(wait_for(pid)));
	printf("woken: %ld\n", woken);
	CHECK(shmdt(word) == 0 && shmdt(other) == 0);
}

int main(void)
{
	on_siginfo(SIGSEGV, on_fault, 0);
	int id = shmget(IPC_PRIVATE, 4 * PAGE, 0600);
	CHECK(id >= 0);
	addresses(id);
	rights(id);
	parts(id);
	futexes(id);
	SHOW(shmctl(id, IPC_RMID, NULL));
	return 0;
}
