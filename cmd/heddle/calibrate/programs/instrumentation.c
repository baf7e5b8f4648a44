// The costs of PEREGRINE's instrumentation (section 3.2 and figure 8): the check of
// a thread's flag at calls and returns, and slot() before each instruction; and
// the wrapper of a synchronization operation, without the operation.
#include "measure.h"

static __thread int on;
static long value = 1;

// Something a function does: eight additions that do not wait for each other.
#define WORK                                                                   \
	long a = x, b = x, c = x, d = x, one = 1;                                  \
	__asm__ volatile("add %4, %0; add %4, %1; add %4, %2; add %4, %3\n\t"       \
	                 "add %4, %0; add %4, %1; add %4, %2; add %4, %3"            \
	                 : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(one));           \
	return a + b + c + d

static NOINLINE long bare(long x) {
	WORK;
}

static NOINLINE long slow(long x) { return x + 1; }

static NOINLINE long checked(long x) {
	if (on) return slow(x);
	WORK;
}

static void bare_calls(long n) {
	long x = value;
	for (long i = 0; i < n; i++) x = bare(x);
	value = x;
}

static void checked_calls(long n) {
	long x = value;
	for (long i = 0; i < n; i++) {
		x = checked(x);
		if (on) x = slow(x);
	}
	value = x;
}

// slot() of figure 8: most instructions have no action of the thread's.
struct action {
	long branches;
	struct action *next;
};
static __thread long branches;
static __thread struct action *actions[256];

static NOINLINE void slot(int instruction) {
	struct action *a = actions[instruction & 255];
	if (a && a->branches == branches) {
		actions[instruction & 255] = a->next;
		value++;
	}
}

#define STEP __asm__ volatile("add %1, %0" : "+r"(x) : "r"(one));

static void bare_steps(long n) {
	long x = 1, one = 1;
	for (long i = 0; i < n; i += 4) { STEP STEP STEP STEP }
	value = x;
}

static void slot_steps(long n) {
	long x = 1, one = 1;
	for (long i = 0; i < n; i += 4) {
		slot(i); STEP
		slot(i + 1); STEP
		slot(i + 2); STEP
		slot(i + 3); STEP
	}
	value = x;
}

// The wrapper: the number of the thread, the next operation of the schedule, an entry in the log.
struct entry {
	int thread, operation;
	void *object;
	long number;
};
static struct entry schedule[1024], history[1024];
static __thread int self;
static __thread long own;
static long turn, diverged;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static NOINLINE int wrapped_lock(pthread_mutex_t *m) {
	struct entry *next = &schedule[turn & 1023];
	if (next->thread != self || next->operation != 0 || next->object) diverged++;
	int result = pthread_mutex_lock(m);
	history[turn & 1023] = (struct entry){self, 0, m, own++};
	turn++;
	return result;
}

static NOINLINE int wrapped_unlock(pthread_mutex_t *m) {
	struct entry *next = &schedule[turn & 1023];
	if (next->thread != self || next->operation != 0 || next->object) diverged++;
	int result = pthread_mutex_unlock(m);
	history[turn & 1023] = (struct entry){self, 1, m, own++};
	turn++;
	return result;
}

static void plain_locks(long n) {
	for (long i = 0; i < n; i += 2) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void wrapped_locks(long n) {
	for (long i = 0; i < n; i += 2) {
		wrapped_lock(&mutex);
		wrapped_unlock(&mutex);
	}
}

int main(void) {
	report("slot_check", (least_ns(checked_calls, 1000000) - least_ns(bare_calls, 1000000)) / 2);
	report("slot_call", least_ns(slot_steps, 1000000) - least_ns(bare_steps, 1000000));
	report("sync", least_ns(wrapped_locks, 400000) - least_ns(plain_locks, 400000));
	return value == 0 || diverged < 0;
}
