// aba: a stack without locks (Treiber, 1986) from which threads pop two nodes
// and push them back.
//
// A thread that pops reads the first node and its successor, and then exchanges
// the head if it is still the first node. In the buggy form the head is only the
// node: if others have meanwhile popped that node and its successor and pushed
// the first one back, the exchange succeeds and makes the head a node that is not
// on the stack. The fixed form counts changes of the head in the same word
// (IBM System/370 Principles of Operation, appendix A). All accesses are atomic,
// so there is no data race in either form.
#include "suite.h"

typedef uint64_t word; // a node's number plus 1, or 0; above that the changes

#define NODE(head) ((head) & 0xffffffffu)

static long threads = 2, rounds = 50, node_count = 4;
static word head;
static word *next;   // by node
static word *owners; // how many threads have popped the node and not pushed it

static word changed(word old, word node)
{
#ifdef BUGGY
	(void)old;
	return node;
#else
	return ((old >> 32) + 1) << 32 | node;
#endif
}

static word load(word *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static bool exchange(word old, word new)
{
	return __atomic_compare_exchange_n(&head, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void push(word node)
{
	word left = __atomic_sub_fetch(&owners[node], 1, __ATOMIC_SEQ_CST);
	assert(left == 0);
	word old;
	do {
		old = load(&head);
		__atomic_exchange_n(&next[node], NODE(old), __ATOMIC_SEQ_CST);
	} while (!exchange(old, changed(old, node)));
}

// pop returns a node, or 0 when the stack is empty.
static word pop(long id)
{
	word old, node;
	do {
		old = load(&head);
		node = NODE(old);
		if (node == 0)
			return 0;
		word after = load(&next[node]);
		if (id == 0)
			DELAY(1);
		if (exchange(old, changed(old, after)))
			break;
	} while (true);
	word count = __atomic_add_fetch(&owners[node], 1, __ATOMIC_SEQ_CST);
	assert(count == 1);
	return node;
}

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		if (id > 0)
			DELAY(1);
		word first = pop(id), second = pop(id);
		if (first)
			push(first);
		if (id > 0)
			DELAY(1);
		if (second)
			push(second);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		THREADS(&threads),
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		NUMBER('n', "NODES", &node_count, 1, 1000000),
		{0},
	});
	next = allocate(node_count + 1, sizeof *next);
	owners = allocate(node_count + 1, sizeof *owners);
	for (long i = 1; i <= node_count; i++) {
		owners[i] = 1;
		push(i);
	}

	run_threads(threads, body);

	long left = 0;
	while (pop(1))
		left++;
	if (left != node_count)
		wrong("%ld nodes are left of %ld", left, node_count);
	printf("aba: %ld nodes, correct\n", node_count);
	free(next);
	free(owners);
	return 0;
}
