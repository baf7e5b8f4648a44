// PI futexes: lock, trylock, unlock, hand-over, time-outs, owners that die, deadlocks, and refused calls.
#include "futex.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

static atomic_uint word, other;
static atomic_int step;

// asleep waits until a thread or process sleeps in the kernel.
static void asleep(pid_t tid)
{
	char path[64], buf[512];
	snprintf(path, sizeof path, "/proc/%d/stat", tid);
	do {
		nap();
		CHECK(read_file(path, buf, sizeof buf) > 0);
	} while (strstr(buf, ") S ") == NULL);
}

static void show_word(const char *what, atomic_uint *w, pid_t owner)
{
	unsigned v = *w;
	printf("%s: owner %s, waiters %d, died %d\n", what,
	       (v & FUTEX_TID_MASK) == 0 ? "none" : (v & FUTEX_TID_MASK) == (unsigned)owner ? "as expected" : "another",
	       (v & FUTEX_WAITERS) != 0, (v & FUTEX_OWNER_DIED) != 0);
}

static void alone(void)
{
	pid_t me = gettid();
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	show_word("locked", &word, me);
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	show_word("unlocked", &word, me);
	SHOW(futex(&word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = FUTEX_OWNER_DIED;
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	show_word("of an owner that died", &word, me);
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = 0x3ffffff0; // the id of no thread
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = 0;
	SHOW(futex((atomic_uint *)((char *)&word + 1), FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(NULL, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, (void *)1, NULL, 0));
	struct timespec bad = {0, 2000000000};
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, &bad, NULL, 0));
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	atomic_uint *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SHOW(futex(constant, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	CHECK(munmap(constant, 4096) == 0);
}

static atomic_int tid, told;

static void *contender(void *arg)
{
	tid = gettid();
	long r = futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	int e = errno;
	while (!told) // the unlocking thread has printed its result
		nap();
	printf("%s: %s\n", (char *)arg, r == 0 ? "has it" : errname(e));
	show_word("then", &word, gettid());
	step++;
	CHECK(r != 0 || futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return NULL;
}

static pthread_t waiting(void *(*f)(void *), void *arg)
{
	tid = told = 0;
	pthread_t t = start(f, arg);
	while (tid == 0)
		nap();
	asleep(tid);
	return t;
}

static void contended(void)
{
	word = gettid(); // like the fast path of the C library
	pthread_t a = waiting(contender, "first"), b = waiting(contender, "second");
	show_word("two wait", &word, gettid());
	SHOW(step);
	SHOW(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_REQUEUE_PRIVATE, 1, (void *)1, &other, 0));
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)1, &other, word));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	told = 1;
	finish(a);
	finish(b);
	show_word("at the end", &word, 0);
}

static void *holder(void *arg)
{
	(void)arg;
	CHECK(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	step = 1;
	while (step != 2)
		nap();
	return NULL; // ends with the lock held
}

static void dies(void)
{
	step = 0;
	pthread_t h = start(holder, NULL);
	while (step != 1)
		nap();
	pthread_t a = waiting(contender, "after the owner's death");
	step = 2;
	finish(h);
	told = 1;
	finish(a);
	show_word("at the end", &word, 0);
	word = 0;
	// Without a waiter the kernel does not change the word of an owner that ends.
	step = 0;
	h = start(holder, NULL);
	while (step != 1)
		nap();
	step = 2;
	finish(h);
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = 0;
}

static struct entry {
	struct robust_list list;
	atomic_uint word;
} entry;

static struct robust_list_head head;

static void *robust(void *arg)
{
	head.list.next = (struct robust_list *)((uintptr_t)&entry.list | 1);
	head.futex_offset = offsetof(struct entry, word) - offsetof(struct entry, list);
	head.list_op_pending = NULL;
	entry.list.next = &head.list;
	CHECK(syscall(SYS_set_robust_list, &head, sizeof head) == 0);
	CHECK(futex(&entry.word, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == 0);
	step = 1;
	while (step != 2)
		nap();
	return arg;
}

static void *robust_waiter(void *arg)
{
	tid = gettid();
	SHOW(futex(&entry.word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	show_word("robust", &entry.word, gettid());
	entry.word &= ~FUTEX_OWNER_DIED;
	SHOW(futex(&entry.word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	return arg;
}

static void robust_list(void)
{
	for (int waits = 0; waits < 2; waits++) {
		step = 0;
		pthread_t t = start(robust, NULL), w;
		while (step != 1)
			nap();
		if (waits)
			w = waiting(robust_waiter, NULL);
		step = 2;
		finish(t);
		if (waits)
			finish(w);
		show_word("robust, at the end", &entry.word, 0);
		entry.word = 0;
	}
}

static void *timed(void *arg)
{
	(void)arg;
	struct timespec t = after(CLOCK_REALTIME, 2 * MSEC);
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, &t, NULL, 0));
	CHECK(now(CLOCK_REALTIME) >= to_ns(t));
	t = after(CLOCK_MONOTONIC, 2 * MSEC);
	SHOW(futex(&word, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, &t, NULL, 0));
	CHECK(now(CLOCK_MONOTONIC) >= to_ns(t));
	t = after(CLOCK_REALTIME, 2 * MSEC);
	SHOW(futex(&word, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, 0, &t, NULL, 0));
	t = (struct timespec){0};
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, &t, NULL, 0));
	SHOW(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	return NULL;
}

static void time_outs(void)
{
	word = 0;
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	finish(start(timed, NULL));
	show_word("after time-outs", &word, gettid());
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
}

static void *crossing(void *arg)
{
	CHECK(futex(&other, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	tid = gettid();
	CHECK(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	CHECK(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	CHECK(futex(&other, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return arg;
}

static void deadlock(void)
{
	word = other = 0;
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	pthread_t t = waiting(crossing, NULL);
	SHOW(futex(&other, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	finish(t);
}

static void *plain(void *arg)
{
	tid = gettid();
	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0x3ffffff0, NULL, NULL, 0) == 0);
	return arg;
}

// Locking fails on a word that has a waiter of plain FUTEX_WAIT.
static void mixed(void)
{
	word = 0x3ffffff0;
	pthread_t t = waiting(plain, NULL);
	SHOW(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = gettid();
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SHOW(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	finish(t);
	word = 0;
}

static void handler(int sig)
{
	(void)sig;
	step++;
}

// A handler does not end the wait, whatever its flags.
static void interrupted(void)
{
	on_signal(SIGUSR1, handler, 0);
	step = 0;
	word = gettid();
	pthread_t t = waiting(contender, "interrupted");
	OK(pthread_kill(t, SIGUSR1));
	while (step == 0)
		nap();
	nap();
	SHOW(step);
	SHOW(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	told = 1;
	finish(t);
}

// Between processes.
static void shared(void)
{
	atomic_uint *w = shared_memory(4096);
	SHOW(futex(w, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		SHOW(futex(w, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
		CHECK(futex(w, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == 0);
		show_word("the child has it", w, getpid());
		_exit(0); // ends with the lock held
	}
	while ((*w & FUTEX_WAITERS) == 0)
		nap();
	asleep(p);
	CHECK(futex(w, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == 0);
	printf("child: %s\n", status_text(wait_for(p)));
	SHOW(futex(w, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
}

int main(void)
{
	alone();
	contended();
	dies();
	robust_list();
	time_outs();
	deadlock();
	mixed();
	interrupted();
	shared();
	return 0;
}
