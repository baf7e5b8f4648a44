// System V message queues: types and selection, MSG_NOERROR, MSG_EXCEPT, MSG_COPY, limits, errors.
#include "conformance.h"

#include <limits.h>
#include <sys/ipc.h>
#include <sys/msg.h>

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

static int queue;
static struct message { long type; char text[8200]; } in;

static void put(long type, const char *text)
{
	struct message m = {.type = type};
	strcpy(m.text, text);
	CHECK(msgsnd(queue, &m, strlen(text), IPC_NOWAIT) == 0);
}

static void get(long type, size_t room, int flags)
{
	memset(&in, '.', sizeof in);
	ssize_t n = msgrcv(queue, &in, room, type, flags | IPC_NOWAIT);
	printf("type %ld, room %zu, flags %o: ", type, room, flags);
	if (n < 0)
		printf("%s\n", errname(errno));
	else
		printf("%.*s (%ld)%s\n", (int)n, in.text, in.type, in.text[n] == '.' ? "" : " and more");
}

static struct msqid_ds stat_of(int id)
{
	struct msqid_ds d;
	CHECK(msgctl(id, IPC_STAT, &d) == 0);
	return d;
}

static void show_stat(const char *when)
{
	struct msqid_ds d = stat_of(queue);
	printf("%s: %lu messages, %lu of %lu bytes, mode %o, sender %d, receiver %d, times %d %d %d\n", when, d.msg_qnum,
	       d.__msg_cbytes, d.msg_qbytes, d.msg_perm.mode, d.msg_lspid == getpid(), d.msg_lrpid == getpid(), d.msg_stime != 0,
	       d.msg_rtime != 0, d.msg_ctime != 0);
}

static void fill(void)
{
	put(3, "three");
	put(1, "one");
	put(2, "two");
	put(3, "THREE");
	put(1, "ONE");
	put(5, "five");
}

static void drain(void)
{
	while (msgrcv(queue, &in, sizeof in.text, 0, IPC_NOWAIT) >= 0)
		;
	CHECK(errno == ENOMSG);
}

static void selection(void)
{
	fill();
	show_stat("filled");
	get(0, 100, 0);
	get(3, 100, 0);
	get(3, 100, 0);
	get(4, 100, 0);
	get(-1, 100, 0);
	get(-2, 100, 0);
	get(-2, 100, 0);
	get(-2, 100, 0);
	get(LONG_MIN, 100, 0);
	show_stat("empty");
	fill();
	get(3, 100, MSG_EXCEPT);
	get(1, 100, MSG_EXCEPT);
	get(1, 100, MSG_EXCEPT);
	get(0, 100, MSG_EXCEPT);
	get(-100, 100, MSG_EXCEPT);
	get(9, 100, MSG_EXCEPT);
	drain();
	fill();
	get(-100, 2, 0);
	get(-100, 2, MSG_NOERROR);
	get(3, 4, 0);
	get(3, 0, MSG_NOERROR);
	get(3, 5, 0);
	get(1, 3, 0);
	drain();
}

static void copies(void)
{
	fill();
	for (int i = -1; i < 7; i++)
		get(i, 100, MSG_COPY);
	get(0, 2, MSG_COPY);
	get(0, 2, MSG_COPY | MSG_NOERROR);
	get(0, 100, MSG_COPY | MSG_EXCEPT);
	SHOW(msgrcv(queue, &in, 100, 0, MSG_COPY));
	SHOW(msgrcv(queue, (void *)8, 100, 0, MSG_COPY | IPC_NOWAIT));
	show_stat("copied");
	drain();
}

static void limits(void)
{
	struct message big = {.type = 1};
	SHOW(msgsnd(queue, &big, 8193, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, -1, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, 8192, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, 8192, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, 1, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, 0, IPC_NOWAIT));
	show_stat("full");
	SHOW(msgrcv(queue, &in, 8192, 0, 0));
	SHOW(msgsnd(queue, &big, 8000, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, 193, IPC_NOWAIT));
	SHOW(msgsnd(queue, &big, 192, IPC_NOWAIT));
	drain();
	struct msqid_ds d = stat_of(queue);
	d.msg_qbytes = 3;
	SHOW(msgctl(queue, IPC_SET, &d));
	for (int i = 0; i < 4; i++)
		SHOW(msgsnd(queue, &big, 0, IPC_NOWAIT)); // as many empty messages as bytes
	drain();
	d.msg_qbytes = 16384;
	d.msg_perm.mode = 0640;
	SHOW(msgctl(queue, IPC_SET, &d));
	show_stat("set");
	struct msginfo l;
	CHECK(msgctl(0, IPC_INFO, (void *)&l) >= 0);
	printf("limits %d %d %d %d %d %d %d %d\n", l.msgpool, l.msgmap, l.msgmax, l.msgmnb, l.msgmni, l.msgssz, l.msgtql, l.msgseg);
	put(1, "12345");
	int highest = msgctl(0, MSG_INFO, (void *)&l), found = 0;
	CHECK(l.msgpool >= 1 && l.msgmap >= 1 && l.msgtql >= 5);
	for (int i = 0; i <= highest; i++)
		found += msgctl(i, MSG_STAT, &d) == queue;
	printf("found by index: %d\n", found);
	CHECK(msgctl(queue % 32768, MSG_STAT_ANY, &d) == queue);
	drain();
}

static void errors(void)
{
	struct message m = {.type = 0};
	SHOW(msgsnd(queue, &m, 1, 0));
	m.type = -1;
	SHOW(msgsnd(queue, &m, 1, 0));
	m.type = 1;
	SHOW(msgsnd(-1, &m, 1, 0));
	SHOW(msgsnd(1 << 30, &m, 1, 0));
	SHOW(msgsnd(queue, (void *)8, 1, 0));
	SHOW(msgrcv(queue, &in, -1, 0, IPC_NOWAIT));
	SHOW(msgrcv(-1, &in, 1, 0, IPC_NOWAIT));
	SHOW(msgrcv(1 << 30, &in, 1, 0, IPC_NOWAIT));
	put(1, "lost");
	SHOW(msgrcv(queue, (void *)8, 100, 0, IPC_NOWAIT));
	show_stat("after a bad address");
	SHOW(msgctl(queue, IPC_STAT, (void *)8));
	SHOW(msgctl(queue, IPC_SET, (void *)8));
	SHOW(msgctl(queue, 99, NULL));
	SHOW(msgctl(-1, IPC_RMID, NULL));
}

int main(void)
{
	key_t key = getpid() | 0x54000000;
	SHOW(msgget(key, 0600));
	queue = msgget(key, IPC_CREAT | 0600);
	CHECK(queue >= 0);
	SHOW(msgget(key, IPC_CREAT | 0600) == queue);
	SHOW(msgget(key, IPC_CREAT | IPC_EXCL | 0600));
	show_stat("new");
	selection();
	copies();
	limits();
	errors();
	SHOW(msgctl(queue, IPC_RMID, NULL));
	SHOW(msgctl(queue, IPC_RMID, NULL));
	SHOW(msgget(key, 0));
	get(0, 1, 0);
	return 0;
}
