// One string is appended to another, N times, while a thread empties the first one and fills it again. Each
// string has a lock. The buggy form asks for the length of the other string and then for its characters; the
// string may be shorter by then. (StringBuffer of JDK 1.4; Flanagan and Freund, Atomizer, POPL 2004.) In the
// fixed form the lock of the other string is held from the question on.
#include "bugs.h"

#define MOST 8

struct string {
	pthread_mutex_t lock;
	int length;
	char text[MOST];
};

static struct string source = {.lock = PTHREAD_MUTEX_INITIALIZER, .length = MOST, .text = "xxxxxxx"};
static struct string sink = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int rounds;

static void append(struct string *to, struct string *from)
{
	LOCK(from->lock);
	int length = from->length;
#ifdef BUGGY
	UNLOCK(from->lock);
	LOCK(from->lock);
#endif
	CHECK(length <= from->length);
	char text[MOST];
	memcpy(text, from->text, length);
	UNLOCK(from->lock);
	LOCK(to->lock);
	memcpy(to->text, text, length);
	to->length = length;
	UNLOCK(to->lock);
}

static void *appender(void *unused)
{
	for (int i = 0; i < rounds; i++)
		append(&sink, &source);
	return unused;
}

static void *changer(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		LOCK(source.lock);
		source.length = 0;
		UNLOCK(source.lock);
		LOCK(source.lock);
		source.length = MOST;
		UNLOCK(source.lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	rounds = number(argc, argv, 1, 1, 200);
	start(appender, NULL);
	start(changer, NULL);
	join_all();
	return 0;
}
