// Waiting at System V message queues: order of receivers, senders that wait for room, removal, IPC_SET, signals, threads.
#include "conformance.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/time.h>

static int queue;

struct message { long type; char text[9000]; };

// shared is written by children: how many have begun, and the results.
static struct {
	atomic_int begun;
	char got[16][64];
} *shared;

static int is_asleep(pid_t pid)
{
	char name[64], text[4096];
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	CHECK(read_file(name, text, sizeof text) > 0);
	return strstr(text, ") S ") != NULL;
}

struct receiver {
	pid_t pid;
	int n;
};

// receive starts a child that waits for a message.
static struct receiver receive(const char *name, long type, size_t room, int flags)
{
	int before = atomic_load(&shared->begun);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct message m;
		atomic_fetch_add(&shared->begun, 1);
		ssize_t n = msgrcv(queue, &m, room, type, flags);
		char *to = shared->got[before];
		if (n < 0)
			snprintf(to, 64, "%s: %s", name, errname(errno));
		else
			snprintf(to, 64, "%s: %.*s (%ld)", name, (int)n, m.text, m.type);
		_exit(0);
	}
	while (atomic_load(&shared->begun) == before || !is_asleep(pid))
		nap();
	return (struct receiver){pid, before};
}

static void end(struct receiver r)
{
	CHECK(wait_for(r.pid) == 0);
	printf("%s\n", shared->got[r.n]);
}

static void put(long type, const char *text)
{
	struct message m = {.type = type};
	strcpy(m.text, text);
	CHECK(msgsnd(queue, &m, strlen(text), 0) == 0);
}

static int messages(void)
{
	struct msqid_ds d;
	CHECK(msgctl(queue, IPC_STAT, &d) == 0);
	return d.msg_qnum;
}

static void receivers(void)
{
	struct receiver a = receive("two", 2, 100, 0), b = receive("below four", -3, 100, 0), c = receive("not two", 2, 100, MSG_EXCEPT),
	      d = receive("any", 0, 100, 0);
	put(4, "a");
	end(c);
	put(2, "b");
	end(a);
	put(4, "c");
	end(d);
	put(9, "d");
	printf("left: %d\n", messages());
	put(1, "e");
	end(b);
	struct message m;
	CHECK(msgrcv(queue, &m, 100, 9, 0) == 1);
	// Too long for the first receiver and truncated for the second.
	a = receive("short", 0, 2, 0);
	b = receive("cut", 0, 2, MSG_NOERROR);
	put(1, "long");
	end(a);
	end(b);
	printf("left: %d\n", messages());
}

static void *sender(void *arg)
{
	struct message m = {.type = (long)arg};
	long r = msgsnd(queue, &m, 5000 + (long)arg, 0);
	return (void *)(r == 0 ? 0 : (long)errno);
}

static void senders(void)
{
	struct message m = {.type = 100};
	for (int i = 0; i < 2; i++)
		CHECK(msgsnd(queue, &m, 8192, 0) == 0);
	pthread_t t[3];
	for (long i = 0; i < 3; i++)
		t[i] = start(sender, (void *)(i + 1));
	nap();
	printf("left: %d\n", messages());
	long seen = 0;
	for (int i = 0; i < 5; i++) {
		ssize_t n = msgrcv(queue, &m, sizeof m.text, 0, 0);
		CHECK(n == 8192 || n == 5000 + m.type);
		seen += m.type;
	}
	for (int i = 0; i < 3; i++)
		printf("sender: %s\n", errname((long)finish(t[i])));
	printf("sum of types %ld, left: %d\n", seen, messages());
}

static volatile sig_atomic_t got;

static void on_alarm(int sig) { got = sig; }

static void signals(void)
{
	struct itimerval in = {{0, 4000}, {0, 4000}};
	struct itimerval none = {{0, 0}, {0, 0}};
	struct message m = {.type = 1};
	for (int restart = 0; restart < 2; restart++) {
		on_signal(SIGALRM, on_alarm, restart ? SA_RESTART : 0);
		CHECK(setitimer(ITIMER_REAL, &in, NULL) == 0);
		SHOW(msgrcv(queue, &m, 10, 0, 0));
		CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	}
	for (int i = 0; i < 2; i++)
		CHECK(msgsnd(queue, &m, 8192, 0) == 0);
	CHECK(setitimer(ITIMER_REAL, &in, NULL) == 0);
	SHOW(msgsnd(queue, &m, 10, 0));
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(msgrcv(queue, &m, sizeof m.text, 0, 0) == 8192);
}

static void changes(void)
{
	struct msqid_ds d;
	CHECK(msgctl(queue, IPC_STAT, &d) == 0);
	d.msg_qbytes = 10;
	CHECK(msgctl(queue, IPC_SET, &d) == 0);
	put(1, "0123456789");
	pthread_t t = start(sender, (void *)1);
	nap();
	d.msg_qbytes = 16000;
	CHECK(msgctl(queue, IPC_SET, &d) == 0);
	printf("sender: %s\n", errname((long)finish(t)));
	printf("left: %d\n", messages());
	struct message m;
	CHECK(msgrcv(queue, &m, 10, 0, 0) == 10 && msgrcv(queue, &m, 6000, 0, 0) == 5001);
	struct receiver a = receive("still there", 0, 100, 0);
	CHECK(msgctl(queue, IPC_SET, &d) == 0); // receivers check again
	put(1, "after the change");
	end(a);
}

static void removal(void)
{
	struct message m = {.type = 1};
	struct receiver a = receive("removed", 5, 100, 0);
	for (int i = 0; i < 2; i++)
		CHECK(msgsnd(queue, &m, 8000, 0) == 0);
	pthread_t t = start(sender, (void *)1);
	nap();
	CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
	end(a);
	long r = (long)finish(t);
	CHECK(r == EIDRM || r == EINVAL); // EINVAL: it had not yet begun to wait
	printf("sender ended\n");
}

int main(void)
{
	shared = shared_memory(4096);
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
	receivers();
	senders();
	signals();
	changes();
	removal();
	return 0;
}
