// N readers use a block that one thread replaces; the buggy form frees the old block as soon as the
// pointer is changed. (The class of CVE-2016-0728 and CVE-2017-15265: a reference that is counted
// after the pointer is read.)
#include "bugs.h"

struct block {
	int references, data[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *current;

static struct block *make(int value)
{
	struct block *b = malloc(sizeof *b);
	b->references = 1;
	for (int i = 0; i < 64; i++)
		b->data[i] = value;
	return b;
}

static void put(struct block *b)
{
	LOCK(lock);
	int left = --b->references;
	if (left == 0)
		for (int i = 0; i < 64; i++)
			b->data[i] = -1;
	UNLOCK(lock);
	if (left == 0)
		free(b);
}

static void *reader(void *unused)
{
	LOCK(lock);
	struct block *b = current;
#ifdef BUGGY
	UNLOCK(lock);
	LOCK(lock);
#endif
	b->references++;
	UNLOCK(lock);
	CHECK(*(volatile int *)&b->data[63] > 0);
	put(b);
	return unused;
}

static void *replacer(void *unused)
{
	struct block *b = make(2);
	LOCK(lock);
	struct block *old = current;
	current = b;
	UNLOCK(lock);
	put(old);
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 2, 1, 200);
	current = make(1);
	start(replacer, NULL);
	for (int i = 0; i < n; i++)
		start(reader, NULL);
	join_all();
	put(current);
	return 0;
}
