// /proc/PID/mem: reading and writing one's own memory and another's, whatever its protection; permissions, and the file of a process that has ended.
#include "tracer.h"

enum { PAGE = 4096 };

static const char *own = "/proc/self/mem";

static void self(void)
{
	int fd = open(own, O_RDWR);
	CHECK(fd >= 0);
	char buf[32] = {0}, text[] = "the text";
	SHOW(pread(fd, buf, sizeof text, (off_t)text));
	printf("%s\n", buf);
	SHOW(pwrite(fd, "ANY", 3, (off_t)text + 4));
	printf("%s\n", text);
	SHOW(lseek(fd, (off_t)text, SEEK_SET) == (off_t)text);
	SHOW(read(fd, buf, 3));
	SHOW(read(fd, buf + 3, 3));
	printf("%.6s\n", buf);
	SHOW(lseek(fd, 2, SEEK_CUR) == (off_t)text + 8);
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(pread(fd, buf, 8, 0));
	SHOW(pwrite(fd, buf, 8, 16));
	SHOW(read(fd, buf, 0));
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("mode %o size %ld\n", st.st_mode & 07777, (long)st.st_size);
	// Private memory that may not be read or written.
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	strcpy(p, "first");
	CHECK(mprotect(p, PAGE, PROT_READ) == 0 && mprotect(p + PAGE, PAGE, PROT_NONE) == 0 && munmap(p + 3 * PAGE, PAGE) == 0);
	SHOW(pwrite(fd, "FIRST", 5, (off_t)p));
	printf("%s\n", p);
	SHOW(pwrite(fd, "second", 7, (off_t)p + PAGE));
	SHOW(pread(fd, buf, 7, (off_t)p + PAGE));
	printf("%s\n", buf);
	// A transfer ends at the first unmapped page.
	char big[2 * PAGE];
	SHOW(pread(fd, big, sizeof big, (off_t)p + 2 * PAGE));
	SHOW(pwrite(fd, big, sizeof big, (off_t)p + 2 * PAGE));
	SHOW(pread(fd, big, sizeof big, (off_t)p + 3 * PAGE));
	// Writes to shared memory obey its protection.
	char *shared = shared_memory(PAGE);
	strcpy(shared, "shared");
	SHOW(pwrite(fd, "S", 1, (off_t)shared));
	CHECK(mprotect(shared, PAGE, PROT_READ) == 0);
	SHOW(pwrite(fd, "X", 1, (off_t)shared));
	printf("%s\n", shared);
	// A write to a private mapping of a file copies the page.
	write_file("file", "the file's text");
	int file = open("file", O_RDONLY);
	char *mapped = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	SHOW(pwrite(fd, "MY ", 3, (off_t)mapped));
	CHECK(read_file("file", buf, sizeof buf) == 15);
	printf("%s, %s\n", mapped, buf);
	char *other = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	printf("%s\n", other);
	close(file);
	close(fd);
	fd = open(own, O_RDONLY);
	SHOW(pwrite(fd, "x", 1, (off_t)text));
	close(fd);
}

__attribute__((noinline)) static int number(void)
{
	int n = 1;
	__asm__ volatile("movl $1, %0" : "=r"(n));
	return n;
}

// Changed code takes effect.
static void code(void)
{
	int fd = open(own, O_RDWR), sum = 0;
	unsigned char *at = (unsigned char *)number;
	while (memcmp(at, "\x01\x00\x00\x00", 4) != 0)
		at++;
	for (int i = 1; i < 200; i++) {
		CHECK(pwrite(fd, &i, 1, (off_t)at) == 1);
		sum += number();
	}
	printf("%d\n", sum);
	// Code changed in a child does not change in the parent.
	unsigned char seven = 7;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		int mine = open(own, O_RDWR);
		CHECK(pwrite(mine, &seven, 1, (off_t)at) == 1);
		_exit(number());
	}
	printf("%s, %d\n", status_text(wait_for(pid)), number());
	close(fd);
}

static int idle(void) { return 0; }

static void another(void)
{
	static char text[] = "before";
	char path[64], buf[16] = {0};
	pid_t pid = traced(idle);
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	SHOW(pwrite(fd, "behind", 6, (off_t)text));
	SHOW(pread(fd, buf, 6, (off_t)text));
	printf("%s %s\n", buf, text);
	struct iovec here = {buf, 6}, there = {text, 6};
	SHOW(process_vm_readv(pid, &here, 1, &there, 1, 0));
	printf("%s\n", buf);
	memcpy(buf, "across", 6);
	SHOW(process_vm_writev(pid, &here, 1, &there, 1, 0));
	SHOW(pread(fd, buf + 6, 6, (off_t)text));
	printf("%s\n", buf);
	// The file of a thread is the memory of its process.
	snprintf(path, sizeof path, "/proc/%d/task/%d/mem", pid, pid);
	int task = open(path, O_RDONLY);
	SHOW(pread(task, buf, 3, (off_t)text));
	let_go(PTRACE_CONT, pid, 0);
	SHOW(pread(fd, buf, 6, (off_t)text));
	SHOW(pwrite(fd, buf, 6, (off_t)text));
	SHOW(open(path, O_RDONLY));
	close(fd);
	close(task);
}

// Other users may not, and no one may if the target is not dumpable.
static void forbidden(void)
{
	if (geteuid() != 0) {
		printf("EACCES\nEACCES\nEPERM\nEACCES\nEPERM\nexit 0\n");
		return;
	}
	fflush(stdout);
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t target = fork();
	if (target == 0) {
		CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
		CHECK(write(ends[1], "x", 1) == 1);
		pause();
		_exit(0);
	}
	char c;
	CHECK(read(ends[0], &c, 1) == 1);
	pid_t pid = fork();
	if (pid == 0) {
		char path[64];
		CHECK(syscall(SYS_setresuid, 65533, 65533, 65533) == 0);
		CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
		snprintf(path, sizeof path, "/proc/%d/mem", getppid());
		printf("%s\n", open(path, O_RDONLY) == -1 ? errname(errno) : "open");
		snprintf(path, sizeof path, "/proc/%d/mem", target);
		printf("%s\n", open(path, O_RDONLY) == -1 ? errname(errno) : "open");
		printf("%s\n", trace(PTRACE_ATTACH, target, 0, NULL) == -1 ? errname(errno) : "attached");
		CHECK(syscall(SYS_setresuid, 65533, 65533, 65533) == 0);
		snprintf(path, sizeof path, "/proc/%d/mem", getpid());
		CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
		printf("%s\n", open(path, O_RDONLY) == -1 ? errname(errno) : "open");
		printf("%s\n", trace(PTRACE_ATTACH, getppid(), 0, NULL) == -1 ? errname(errno) : "attached");
		exit(0);
	}
	printf("%s\n", status_text(wait_for(pid)));
	CHECK(kill(target, SIGKILL) == 0);
	wait_for(target);
}

int main(void)
{
	self();
	code();
	another();
	forbidden();
	return 0;
}
