// process_vm_readv and process_vm_writev between parent and child, and by the id of a thread: vectors, short transfers, errors.
#include "conformance.h"

#include <sys/uio.h>

static char text[] = "what the parent has", room[100];

static atomic_int thread_id;

static void *other(void *unused)
{
	thread_id = gettid();
	for (;;)
		pause();
	return unused;
}

// threads makes a child and returns the id of its second thread.
static void threads(void)
{
	int ids[2];
	CHECK(pipe(ids) == 0);
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		pthread_t t;
		strcpy(text, "what a thread has");
		CHECK(pthread_create(&t, NULL, other, NULL) == 0);
		while (!thread_id)
			nap();
		int id = thread_id;
		CHECK(write(ids[1], &id, sizeof id) == sizeof id);
		for (;;)
			pause();
	}
	int id;
	CHECK(read(ids[0], &id, sizeof id) == sizeof id);
	struct iovec one = {room, 17}, remote = {text, 17};
	memset(room, 0, sizeof room);
	SHOW(process_vm_readv(id, &one, 1, &remote, 1, 0));
	printf("%s\n", room);
	CHECK(kill(pid, SIGKILL) == 0);
	siginfo_t info;
	CHECK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0);
	SHOW(process_vm_readv(pid, &one, 1, &remote, 1, 0));
	SHOW(process_vm_readv(id, &one, 1, &remote, 1, 0));
	printf("%s\n", status_text(wait_for(pid)));
}

int main(void)
{
	char *hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED && munmap(hole + 4096, 4096) == 0);
	int to[2], from[2];
	CHECK(pipe(to) == 0 && pipe(from) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	char c = 0;
	if (pid == 0) {
		strcpy(text, "what the child has");
		memset(hole, 'h', 4096);
		CHECK(write(from[1], "r", 1) == 1 && read(to[0], &c, 1) == 1);
		printf("child: %s\n", text);
		_exit(0);
	}
	CHECK(read(from[0], &c, 1) == 1);
	struct iovec local[2] = {{room, 4}, {room + 50, 30}}, remote[2] = {{text, 9}, {text + 9, 10}};
	SHOW(process_vm_readv(pid, local, 2, remote, 2, 0));
	printf("%s %s\n", room, room + 50);
	struct iovec one = {room, 100}, edge = {hole + 4090, 20}, gone = {hole + 4096, 10};
	SHOW(process_vm_readv(pid, &one, 1, &edge, 1, 0));
	SHOW(process_vm_readv(pid, &one, 1, &gone, 1, 0));
	SHOW(process_vm_readv(pid, &one, 1, remote, 0, 0));
	SHOW(process_vm_readv(pid, &one, 1, remote, 1, 1));
	SHOW(process_vm_readv(pid, &one, 1025, remote, 1, 0));
	SHOW(process_vm_readv(1 << 28, &one, 1, remote, 1, 0));
	struct iovec in = {"what the parent wrote", 19}, out = {text, 19};
	SHOW(process_vm_writev(pid, &in, 1, &out, 1, 0));
	SHOW(process_vm_writev(pid, &in, 1, &gone, 1, 0));
	CHECK(write(to[1], "g", 1) == 1);
	printf("%s\n", status_text(wait_for(pid)));
	printf("parent: %s\n", text);
	SHOW(process_vm_readv(pid, &one, 1, remote, 1, 0));
	SHOW(process_vm_readv(getpid(), &one, 1, &out, 1, 0));
	printf("%.19s\n", room);
	threads();
	return 0;
}
