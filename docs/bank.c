// Two tellers pay out of one account, each after a look at its balance. Sometimes the
// account is overdrawn. With -DFIXED look and payment are one critical section.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

#ifdef FIXED
static void pay_if_covered(int amount) {
	pthread_mutex_lock(&lock);
	if (balance >= amount) balance -= amount;
	pthread_mutex_unlock(&lock);
}
#else
static void pay_if_covered(int amount) {
	pthread_mutex_lock(&lock);
	int seen = balance;
	pthread_mutex_unlock(&lock);
	if (seen < amount) return;
	pthread_mutex_lock(&lock);
	balance -= amount;
	pthread_mutex_unlock(&lock);
}
#endif

static void *teller(void *arg) {
	for (int i = 0; i < 10; i++) pay_if_covered(10);
	return arg;
}

int main(void) {
	pthread_t t[2];
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, teller, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	if (balance < 0) {
		fprintf(stderr, "overdrawn by %d\n", -balance);
		abort();
	}
	puts("right");
	return 0;
}
