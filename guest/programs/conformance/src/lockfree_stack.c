// A lock-free stack with a version counter beside its head (CMPXCHG16B), pushed and popped by eight threads at once.
#include "conformance.h"

enum { THREADS = 8, EACH = 150 };

struct node {
	struct node *next;
	int value;
};

struct head {
	struct node *top;
	uintptr_t version;
};

static _Alignas(16) struct head head;
static struct node pool[THREADS * EACH];
static atomic_int popped[THREADS * EACH];

// swap replaces head by want when it still is *seen; otherwise it updates *seen.
static bool swap(struct head *seen, struct head want)
{
	bool done;
	__asm__ volatile("lock cmpxchg16b %0\n setz %1"
			 : "+m"(head), "=q"(done), "+a"(seen->top), "+d"(seen->version)
			 : "b"(want.top), "c"(want.version)
			 : "cc", "memory");
	return done;
}

static struct head look(void)
{
	struct head h = {NULL, 0};
	swap(&h, h);
	return h;
}

static void push(struct node *n)
{
	struct head h = look();
	do
		n->next = h.top;
	while (!swap(&h, (struct head){n, h.version + 1}));
}

static struct node *pop(void)
{
	struct head h = look();
	do
		if (h.top == NULL)
			return NULL;
	while (!swap(&h, (struct head){((volatile struct node *)h.top)->next, h.version + 1}));
	return h.top;
}

static void *worker(void *arg)
{
	int me = (intptr_t)arg, got = 0;
	for (int i = 0; i < EACH; i++) {
		push(&pool[me * EACH + i]);
		if (i % 3 == 2) {
			// Popped and pushed again: a stack without versions misses it (ABA).
			struct node *a = pop(), *b = pop();
			if (a)
				push(a);
			if (b)
				push(b);
		}
	}
	struct node *n;
	while (got < EACH && (n = pop()) != NULL) {
		popped[n->value]++;
		got++;
	}
	return (void *)(intptr_t)got;
}

int main(void)
{
	for (int i = 0; i < LEN(pool); i++)
		pool[i].value = i;
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, (void *)(intptr_t)i);
	int got = 0;
	for (int i = 0; i < THREADS; i++)
		got += (intptr_t)finish(t[i]);
	struct node *n;
	while ((n = pop()) != NULL) {
		popped[n->value]++;
		got++;
	}
	for (int i = 0; i < LEN(pool); i++)
		CHECK(popped[i] == 1);
	printf("popped %d\n", got);
	return 0;
}
