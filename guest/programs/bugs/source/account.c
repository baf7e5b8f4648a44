// A deposit and N withdrawals of an account; each withdrawal reads the balance in one critical
// section and subtracts from it in another. (account of SCTBench.)
#include "bugs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 10, paid;

static void *deposit(void *unused)
{
	LOCK(lock);
	balance += 10;
	UNLOCK(lock);
	return unused;
}

static void *withdrawal(void *unused)
{
	LOCK(lock);
	bool covered = balance >= 10;
#ifdef BUGGY
	UNLOCK(lock);
	if (!covered)
		return unused;
	LOCK(lock);
#endif
	if (covered) {
		balance -= 10;
		paid += 10;
	}
	UNLOCK(lock);
	return unused;
}

int main(int argc, char **argv)
{
	int n = number(argc, argv, 3, 1, 200);
	start(deposit, NULL);
	for (int i = 0; i < n; i++)
		start(withdrawal, NULL);
	join_all();
	CHECK(balance >= 0 && balance + paid == 20);
	return 0;
}
