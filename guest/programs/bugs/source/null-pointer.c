// N threads use a connection that another one closes: the buggy form checks whether it is open, and
// then reads the pointer again. (The class of CVE-2015-7550 and CVE-2017-2671.)
#include "bugs.h"

struct connection {
	int socket;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection the_connection = {3};
static struct connection *volatile connection = &the_connection;

static void *user(void *unused)
{
#ifdef BUGGY
	if (connection)
		CHECK(connection->socket == 3);
#else
	LOCK(lock);
	if (connection)
		CHECK(connection->socket == 3);
	UNLOCK(lock);
#endif
	return unused;
}

static void *closer(void *unused)
{
	LOCK(lock);
	connection = NULL;
	UNLOCK(lock);
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 2, 1, 200);
	for (int i = 0; i < n; i++)
		start(user, NULL);
	start(closer, NULL);
	join_all();
	return 0;
}
