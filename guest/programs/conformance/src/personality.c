// personality: its value is kept over fork and exec, and READ_IMPLIES_EXEC, UNAME26, PER_LINUX32 and ADDR_COMPAT_LAYOUT have their effects.
#include "conformance.h"

#include <sys/personality.h>
#include <sys/utsname.h>

static void show_mapping(const char *what, void *at)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f);
	while (fgets(line, sizeof line, f)) {
		unsigned long from, to;
		char rights[5];
		CHECK(sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3);
		if ((unsigned long)at >= from && (unsigned long)at < to)
			printf("%s: %s\n", what, rights);
	}
	fclose(f);
}

static void rights(void)
{
	enum { PAGE = 4096 };
	SHOW(personality(READ_IMPLIES_EXEC));
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	show_mapping("read and write", p);
	CHECK(mprotect(p + PAGE, PAGE, PROT_WRITE) == 0);
	show_mapping("write", p + PAGE);
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
	show_mapping("read", p + PAGE);
	CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
	show_mapping("none", p + PAGE);
	char *heap = sbrk(64 * PAGE);
	CHECK(heap != (void *)-1);
	show_mapping("heap", heap + 63 * PAGE);
	SHOW(personality(0));
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
	show_mapping("read", p + PAGE);
}

static void names(void)
{
	struct utsname u;
	SHOW(personality(UNAME26 | PER_LINUX32));
	CHECK(uname(&u) == 0);
	printf("%d %s\n", strncmp(u.release, "2.6.", 4), u.machine);
	SHOW(personality(0));
	CHECK(uname(&u) == 0);
	printf("%d %s\n", strncmp(u.release, "2.6.", 4) != 0, u.machine);
}

// again is the program after execve.
static int again(void)
{
	SHOW(personality(0xffffffff));
	char text[32];
	CHECK(read_file("/proc/self/personality", text, sizeof text) > 0);
	printf("%s", text);
	void *first = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *second = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("upwards %d, high %d\n", second > first, (unsigned long)first > 0x600000000000);
	return 0;
}

static void run_again(unsigned long flags)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(personality(flags) != -1);
		execl("/proc/self/exe", "personality", "again", NULL);
		_exit(9);
	}
	printf("%s\n", status_text(wait_for(pid)));
}

static void *other_thread(void *arg)
{
	SHOW(personality(0xffffffff));
	CHECK(personality(ADDR_NO_RANDOMIZE) != -1);
	return arg;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return again();
	CHECK(personality(0) != -1);
	SHOW(personality(0xffffffff));
	SHOW(personality(0xfffffffe));
	SHOW((unsigned)personality(0) == 0xfffffffe);
	rights();
	names();
	run_again(0);
	run_again(ADDR_NO_RANDOMIZE);
	run_again(READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE | STICKY_TIMEOUTS);
	run_again(ADDR_COMPAT_LAYOUT);
	// Each thread has its own.
	CHECK(personality(SHORT_INODE) != -1);
	finish(start(other_thread, NULL));
	SHOW(personality(0xffffffff));
	// STICKY_TIMEOUTS: select does not change its time-out.
	struct timeval none = {0, 1000};
	CHECK(personality(STICKY_TIMEOUTS) != -1);
	SHOW(syscall(SYS_select, 0, NULL, NULL, NULL, &none));
	printf("%ld\n", (long)none.tv_usec);
	CHECK(personality(0) != -1);
	SHOW(syscall(SYS_select, 0, NULL, NULL, NULL, &none));
	printf("%ld\n", (long)none.tv_usec);
	return 0;
}
