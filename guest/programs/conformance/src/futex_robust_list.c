// Robust lists by raw system call: the kernel's change of each word of the list when a process or thread dies.
#include "futex.h"

struct node {
	struct robust_list link;
	atomic_uint word;
};

struct shared {
	struct robust_list_head head;
	struct node node[6];
	atomic_uint gate;
};

static struct shared *s;

static void show(const char *what, int i, unsigned owner)
{
	unsigned w = s->node[i].word;
	unsigned tid = w & FUTEX_TID_MASK;
	printf("%s:%s%s, tid %s\n", what, w & FUTEX_OWNER_DIED ? " died" : "", w & FUTEX_WAITERS ? " waiters" : "",
	       tid == 0 ? "zero" : tid == owner ? "owner" : "other");
}

static void *link_to(int i)
{
	return i < 0 ? (void *)&s->head.list : (void *)&s->node[i].link;
}

// die holds node 0, node 1 with waiters, and node 2 with another thread's id; node 3 is
// pending, and node 4 is not on the list.
static void die(void)
{
	unsigned me = gettid();
	s->head.futex_offset = offsetof(struct node, word);
	s->head.list.next = link_to(0);
	s->node[0].link.next = link_to(1);
	s->node[1].link.next = link_to(2);
	s->node[2].link.next = link_to(-1);
	s->head.list_op_pending = link_to(3);
	CHECK(syscall(SYS_set_robust_list, &s->head, sizeof s->head) == 0);
	s->node[0].word = me;
	s->node[1].word = me | FUTEX_WAITERS;
	s->node[2].word = 1;
	s->node[3].word = me;
	s->node[4].word = me;
	s->gate = 1;
	futex(&s->gate, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	syscall(SYS_exit, 0);
}

static void *die_in_thread(void *arg)
{
	*(unsigned *)arg = gettid();
	die();
	return NULL;
}

static void *waiter(void *arg)
{
	(void)arg;
	while (s->gate == 0)
		futex(&s->gate, FUTEX_WAIT, 0, NULL, NULL, 0);
	unsigned w;
	while (((w = s->node[1].word) & FUTEX_OWNER_DIED) == 0)
		futex(&s->node[1].word, FUTEX_WAIT, w, NULL, NULL, 0);
	return NULL;
}

static void all(unsigned owner)
{
	static const char *const what[] = {"plain", "with waiters", "another's", "pending", "not on the list"};
	for (int i = 0; i < LEN(what); i++)
		show(what[i], i, owner);
}

int main(void)
{
	struct robust_list_head head, *got;
	size_t len;
	SHOW(syscall(SYS_set_robust_list, &head, sizeof head - 1));
	SHOW(syscall(SYS_get_robust_list, 0, &got, &len));
	printf("length %zu, glibc has set one: %d\n", len, got != NULL);
	SHOW(syscall(SYS_get_robust_list, 999999999, &got, &len));

	s = shared_memory(sizeof *s);
	pthread_t w = start(waiter, NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		die();
	finish(w);
	printf("process: %s\n", status_text(wait_for(pid)));
	all(pid);

	memset(s, 0, sizeof *s);
	unsigned tid = 0;
	w = start(waiter, NULL);
	pthread_t t = start(die_in_thread, &tid);
	finish(w);
	finish(t);
	printf("thread\n");
	all(tid);

	// The kernel stops without an error at an address that is not mapped.
	memset(s, 0, sizeof *s);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		s->head.futex_offset = offsetof(struct node, word);
		s->head.list.next = link_to(0);
		s->node[0].link.next = (void *)16;
		s->node[0].word = gettid();
		CHECK(syscall(SYS_set_robust_list, &s->head, sizeof s->head) == 0);
		_exit(3);
	}
	printf("broken list: %s\n", status_text(wait_for(pid)));
	show("first node", 0, pid);

	// It also stops in a circular list.
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		s->node[0].link.next = link_to(1);
		s->node[1].link.next = link_to(0);
		s->node[0].word = s->node[1].word = gettid();
		CHECK(syscall(SYS_set_robust_list, &s->head, sizeof s->head) == 0);
		_exit(4);
	}
	printf("circle: %s\n", status_text(wait_for(pid)));
	show("first node", 0, pid);
	show("second node", 1, pid);
	return 0;
}
