// Programs for TestWords: synchronization by the __atomic functions of gcc. With a second argument
// threads write plain data after that, too, which nothing orders.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
// A lock, whose unlocking is a plain store in machine code.
static char lock_word;
static long guarded, unguarded;
static void lock(void) { while (__atomic_test_and_set(&lock_word, __ATOMIC_ACQUIRE)) ; }
static void unlock(void) { __atomic_clear(&lock_word, __ATOMIC_RELEASE); }
static void *spin(void *arg)
{
	for (int i = 0; i < 200; i++) { lock(); guarded++; unlock(); }
	if (arg) unguarded++;
	return 0;
}
// A message, and a flag that is stored with XCHG and read with a plain load.
static long message;
static int flag;
static void *pass(void *arg)
{
	if (arg) { message = 42; __atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST); return 0; }
	while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) ;
	return (void *)message;
}
// A stack of Treiber's.
struct node { struct node *next; long value; };
static struct node *top;
static volatile long plain;
static void push(struct node *n)
{
	n->next = __atomic_load_n(&top, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&top, &n->next, n, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) ;
}
static struct node *pop(void)
{
	struct node *n = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
	while (n && !__atomic_compare_exchange_n(&top, &n, n->next, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) ;
	return n;
}
static void *stack(void *arg)
{
	struct node *nodes = malloc(100 * sizeof *nodes);
	long sum = 0;
	for (int i = 0; i < 100; i++) {
		nodes[i].value = i;
		push(&nodes[i]);
		struct node *n = i % 2 ? pop() : 0;
		if (n) { sum += n->value; n->value = -1; }
	}
	if (arg) plain = sum;
	return (void *)sum;
}
// Processes with a lock in shared memory. Each has a copy of the other word.
static int copied;
static void processes(int more)
{
	struct { int lock; long guarded, unguarded; } *s =
		mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int n = 0; n < 3; n++) {
		__atomic_add_fetch(&copied, 1, __ATOMIC_SEQ_CST);
		if (fork()) continue;
		copied++;
		for (int i = 0; i < 50; i++) {
			while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
			s->guarded++;
			__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
		}
		if (more) s->unguarded++;
		_exit(0);
	}
	while (wait(0) > 0) ;
}
int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "fork")) { processes(argc > 2); return 0; }
	void *(*work)(void *) = !strcmp(argv[1], "spin") ? spin : !strcmp(argv[1], "pass") ? pass : stack;
	pthread_t t[3];
	int n = work == pass ? 2 : 3;
	for (int i = 0; i < n; i++) pthread_create(&t[i], 0, work, work == pass ? (void *)(long)i : (void *)(long)(argc > 2));
	for (int i = 0; i < n; i++) pthread_join(t[i], 0);
	return 0;
}
