// Four threads push entries on a stack: loops that load the top by a plain load and repeat a CMPXCHG until
// it stores, as the queues of servers do.
#include <pthread.h>
#include <stdio.h>

struct entry { struct entry *next; long value; };

static struct entry *volatile top;
static struct entry entries[4][300];

static void *work(void *arg)
{
	long id = (long)arg;
	for (int i = 0; i < 300; i++) {
		struct entry *e = &entries[id][i], *old;
		e->value = id * 1000 + i;
		do {
			old = top;
			for (volatile int k = 0; k < 30; k++) ;
			e->next = old;
		} while (!__sync_bool_compare_and_swap(&top, old, e));
	}
	return 0;
}

int main(void)
{
	pthread_t t[4];
	long n = 0, sum = 0;
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	for (struct entry *e = top; e; e = e->next) n++, sum += e->value;
	printf("%ld entries, sum %ld\n", n, sum);
	return 0;
}
