// A flag that one thread sets and another waits for and clears: the
// "pause" of the SPLASH-2 programs.
#ifndef FLAG_H
#define FLAG_H

#include "suite.h"

struct flag {
	pthread_mutex_t mutex;
	pthread_cond_t raised;
	bool up;
};

static inline void flag_init(struct flag *f)
{
	pthread_mutex_init(&f->mutex, NULL);
	pthread_cond_init(&f->raised, NULL);
	f->up = false;
}

static inline void flag_destroy(struct flag *f)
{
	pthread_mutex_destroy(&f->mutex);
	pthread_cond_destroy(&f->raised);
}

static inline void flag_raise(struct flag *f)
{
	pthread_mutex_lock(&f->mutex);
	f->up = true;
	pthread_cond_signal(&f->raised);
	pthread_mutex_unlock(&f->mutex);
}

static inline void flag_await(struct flag *f)
{
	pthread_mutex_lock(&f->mutex);
	// One wait is counted, whether or not the flag is already set.
	COUNT_WAIT();
	while (!f->up)
		(pthread_cond_wait)(&f->raised, &f->mutex);
	f->up = false;
	pthread_mutex_unlock(&f->mutex);
}

#endif
