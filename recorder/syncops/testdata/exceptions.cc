// A once routine that throws twice, through frames with destructors that unlock,
// and threads that are cancelled in a wait with such a frame above.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

#include "selflog.h"

static std::recursive_mutex guarded;
static std::mutex waited;
static std::once_flag flag;
static int attempts, ready;

struct Guard {
	__attribute__((noinline)) Guard()
	{
		guarded.lock();
		say("mutex_lock 0");
	}
	__attribute__((noinline)) ~Guard()
	{
		guarded.unlock();
		say("mutex_unlock 0");
	}
};

static void routine()
{
	Guard inside;
	if (++attempts < 3)
		throw std::runtime_error("again");
}

static __attribute__((noinline)) void attempt()
{
	Guard outside;
	std::call_once(flag, routine);
	say("once 0");
}

static void *canceled(void *)
{
	self = 1;
	Guard outside;
	pthread_mutex_lock(waited.native_handle());
	say("mutex_lock 0");
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pthread_cond_wait(&c, waited.native_handle());
}

int main()
{
	pthread_t t;
	for (int i = 0; i < 3; i++) {
		try {
			attempt();
		} catch (const std::runtime_error &) {
			say("caught");
		}
	}
	CALL("create", pthread_create(&t, NULL, canceled, NULL));
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	CALL("cancel", pthread_cancel(t));
	CALL("join", pthread_join(t, NULL));
	tell();
}
