// N threads drop their reference to a block, and the last one frees it. The buggy form decrements
// the count and reads it in two steps. (The class of CVE-2017-6346 and CVE-2019-6133.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int references, frees;
static char *block;

static void *owner(void *unused)
{
	LOCK(lock);
	references--;
#ifdef BUGGY
	UNLOCK(lock);
	LOCK(lock);
#endif
	bool last = references == 0;
	UNLOCK(lock);
	if (last) {
		int times = __atomic_add_fetch(&frees, 1, __ATOMIC_SEQ_CST);
		CHECK(times == 1);
		free(block);
	}
	return unused;
}

int main(int argc, char **argv)
{
	references = number(argc, argv, 2, 2, 200);
	block = malloc(64);
	for (int i = references; i > 0; i--)
		start(owner, NULL);
	join_all();
	return 0;
}
