// Detached threads: created so, detached later, detaching themselves; join of them is refused.
#include "conformance.h"

static atomic_int done;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool go;

static void *work(void *arg)
{
	if (arg)
		OK(pthread_detach(pthread_self()));
	done++;
	return NULL;
}

static void *stay(void *arg)
{
	(void)arg;
	OK(pthread_mutex_lock(&mu));
	while (!go)
		OK(pthread_cond_wait(&cond, &mu));
	OK(pthread_mutex_unlock(&mu));
	done++;
	return NULL;
}

int main(void)
{
	pthread_attr_t a;
	pthread_t t;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
	for (int i = 0; i < 20; i++)
		OK(pthread_create(&t, &a, work, NULL));
	for (int i = 0; i < 20; i++)
		OK(pthread_create(&t, NULL, work, &done));
	for (int i = 0; i < 20; i++) {
		OK(pthread_create(&t, NULL, work, NULL));
		OK(pthread_detach(t));
	}
	OK(pthread_create(&t, &a, stay, NULL));
	SHOWE(pthread_join(t, NULL));
	SHOWE(pthread_detach(t));
	SHOWE(pthread_tryjoin_np(t, NULL));
	OK(pthread_mutex_lock(&mu));
	go = true;
	OK(pthread_cond_signal(&cond));
	OK(pthread_mutex_unlock(&mu));
	OK(pthread_attr_destroy(&a));
	while (done < 61)
		nap();
	printf("done %d\n", done);
	return 0;
}
