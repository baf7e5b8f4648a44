// deadlock: threads that move money between accounts, with a lock for each.
//
// In the buggy form a thread locks the account that it takes from first. Two
// that move money between the same accounts in opposite directions wait for each
// other. The fixed form locks the account with the lower number first.
#include "suite.h"

enum { START = 100 };

struct account {
	pthread_mutex_t mutex;
	long money;
};

static long threads = 2, rounds = 20, account_count = 2;
static struct account *accounts;

static void lock_both(long from, long to)
{
#ifndef BUGGY
	if (from > to) {
		long lower = to;
		to = from;
		from = lower;
	}
#endif
	pthread_mutex_lock(&accounts[from].mutex); // race: accounts
	DELAY(5);
	pthread_mutex_lock(&accounts[to].mutex); // race: accounts
}

static void move_money(long from, long to, long sum)
{
	lock_both(from, to);
	accounts[from].money -= sum;
	accounts[to].money += sum;
	pthread_mutex_unlock(&accounts[from].mutex);
	pthread_mutex_unlock(&accounts[to].mutex);
}

static void body(long id)
{
	for (long i = 0; i < rounds; i++) {
		long from = (id + i / rounds) % account_count;
		move_money(from, (from + 1) % account_count, 1 + i % 3);
	}
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv, (struct argument[]){
		NUMBER('p', "THREADS", &threads, 2, MAX_THREADS),
		NUMBER('r', "ROUNDS", &rounds, 1, 10000000),
		NUMBER('n', "ACCOUNTS", &account_count, 2, 10000),
		{0},
	});
	accounts = allocate(account_count, sizeof *accounts);
	for (long i = 0; i < account_count; i++) {
		pthread_mutex_init(&accounts[i].mutex, NULL);
		accounts[i].money = START;
	}

	run_threads(threads, body);

	long sum = 0;
	for (long i = 0; i < account_count; i++) {
		sum += accounts[i].money;
		pthread_mutex_destroy(&accounts[i].mutex);
	}
	if (sum != START * account_count)
		wrong("there is %ld of %ld", sum, START * account_count);
	printf("deadlock: %ld accounts, correct\n", account_count);
	free(accounts);
	return 0;
}
