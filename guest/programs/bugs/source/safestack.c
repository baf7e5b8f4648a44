// A stack of indices without locks from which three threads pop an element, use it and push it
// back: popping decrements the count before it exchanges the head, so that, in rare schedules of
// three threads with at least five preemptions, two threads own one element. Each thread does so N
// times. (SafeStack, D. Vyukov, 2010; in the CHESS and SCTBench collections.) The fixed form
// has a lock.
#include "bugs.h"

#define ELEMENTS 3

struct element {
	int value;
	_Atomic int next;
};

static struct element array[ELEMENTS];
static _Atomic int head, count = ELEMENTS;
static int rounds;

#ifndef BUGGY
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static int pop(void)
{
#ifndef BUGGY
	LOCK(lock);
#endif
	int got = -1;
	while (count > 1) {
		int first = head;
		int next = __atomic_exchange_n((int *)&array[first].next, -1, __ATOMIC_SEQ_CST);
		if (next >= 0) {
			int expected = first;
			if (__atomic_compare_exchange_n((int *)&head, &expected, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
				count--;
				got = first;
				break;
			}
			__atomic_exchange_n((int *)&array[first].next, next, __ATOMIC_SEQ_CST);
		}
	}
#ifndef BUGGY
	UNLOCK(lock);
#endif
	return got;
}

static void push(int index)
{
#ifndef BUGGY
	LOCK(lock);
#endif
	int first = head;
	do
		array[index].next = first;
	while (!__atomic_compare_exchange_n((int *)&head, &first, index, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	count++;
#ifndef BUGGY
	UNLOCK(lock);
#endif
}

static void *user(void *argument)
{
	int id = (int)(long)argument;
	for (int i = 0; i < rounds; i++) {
		int e = pop();
		if (e < 0)
			continue;
		*(volatile int *)&array[e].value = id;
		CHECK(*(volatile int *)&array[e].value == id);
		push(e);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	rounds = number(argc, argv, 4, 1, 1000);
	for (int i = 0; i < ELEMENTS; i++)
		array[i].next = i + 1 < ELEMENTS ? i + 1 : -1;
	for (int i = 0; i < 3; i++)
		start(user, (void *)(long)i);
	join_all();
	return 0;
}
