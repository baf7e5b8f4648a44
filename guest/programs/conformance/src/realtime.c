// Real-time scheduling classes: accepted, reported, inherited and refused values, by sched_setscheduler, sched_setattr and related calls.
// root: yes
#include "conformance.h"

#include <sys/prctl.h>

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
	uint64_t more;
};

static long setattr(pid_t pid, struct attr *a, unsigned flags) { return syscall(SYS_sched_setattr, pid, a, flags); }

static long getattr(pid_t pid, struct attr *a, unsigned size, unsigned flags)
{
	return syscall(SYS_sched_getattr, pid, a, size, flags);
}

static void show(const char *what)
{
	struct attr a = {0};
	struct sched_param p;
	struct timespec t;
	CHECK(getattr(0, &a, sizeof a, 0) == 0 && sched_getparam(0, &p) == 0 && sched_rr_get_interval(0, &t) == 0);
	bool fair = a.policy == 0 || a.policy == 3 || a.policy == 5;
	printf("%s: policy %x, priority %d, size %u policy %u flags %lx nice %d priority %u times %lu %lu %lu, interval %ld\n", what,
	       sched_getscheduler(0), p.sched_priority, a.size, a.policy, (long)a.flags, a.nice, a.priority, fair ? 0 : a.runtime, a.deadline,
	       a.period, fair ? -1 : to_ns(t));
	char buf[1000], *at;
	CHECK(read_file("/proc/self/stat", buf, sizeof buf) > 0 && (at = strrchr(buf, ')')) != NULL);
	long f[50];
	int n = 0;
	for (char *word = strtok(at + 4, " "); word != NULL && n < LEN(f); word = strtok(NULL, " "))
		f[n++] = atol(word);
	printf("stat: priority %ld nice %ld rt %ld policy %ld\n", f[14], f[15], f[36], f[37]);
}

static int set(int policy, int priority) { return sched_setscheduler(0, policy, &(struct sched_param){priority}); }

static void classes(void)
{
	show("at first");
	SHOW(set(SCHED_FIFO, 50));
	show("fifo");
	SHOW(set(SCHED_RR, 1));
	show("rr");
	SHOW(sched_setparam(0, &(struct sched_param){99}));
	show("rr 99");
	SHOW(sched_setparam(0, &(struct sched_param){100}));
	SHOW(sched_setparam(0, &(struct sched_param){0}));
	SHOW(set(SCHED_FIFO, 0));
	SHOW(set(SCHED_FIFO, -1));
	SHOW(set(SCHED_OTHER, 1));
	SHOW(set(4, 0));
	SHOW(set(SCHED_DEADLINE, 0));
	SHOW(set(-3, 0));
	SHOW(sched_setscheduler(0, SCHED_FIFO, NULL));
	SHOW(sched_setscheduler(-1, SCHED_FIFO, &(struct sched_param){1}));
	SHOW(sched_setscheduler(0x3ffffff, SCHED_FIFO, &(struct sched_param){1}));
	SHOW(setpriority(PRIO_PROCESS, 0, 5));
	show("with a nice value");
	SHOW(set(SCHED_BATCH, 0));
	show("batch");
	SHOW(set(SCHED_IDLE, 0));
	show("idle");
	SHOW(set(SCHED_OTHER, 0));
	SHOW(setpriority(PRIO_PROCESS, 0, 0));
	SHOW(sched_yield());
}

static void attributes(void)
{
	struct attr a = {.size = 48, .policy = SCHED_FIFO, .priority = 7};
	SHOW(setattr(0, &a, 0));
	show("by attributes");
	a = (struct attr){.size = 48, .policy = SCHED_OTHER, .nice = 7, .flags = 1};
	SHOW(setattr(0, &a, 0));
	show("nice, reset on fork");
	a = (struct attr){.size = 0, .policy = SCHED_OTHER, .nice = 100};
	SHOW(setattr(0, &a, 0));
	show("size 0");
	a = (struct attr){.size = 48, .policy = SCHED_OTHER, .nice = -100};
	SHOW(setattr(0, &a, 0));
	show("nice -100");
	a = (struct attr){.size = 48, .policy = 77, .flags = 8, .nice = 3};
	SHOW(setattr(0, &a, 0));
	show("keeps the policy");
	a = (struct attr){.size = 48, .policy = SCHED_RR, .priority = 3};
	SHOW(setattr(0, &a, 0));
	a = (struct attr){.size = 48, .policy = SCHED_FIFO, .flags = 0x10};
	SHOW(setattr(0, &a, 0));
	show("keeps the parameters");
	a = (struct attr){.size = 48, .flags = 0x18};
	SHOW(setattr(0, &a, 0));
	show("keeps both");
	a = (struct attr){.size = 48, .policy = SCHED_OTHER, .flags = 0x80};
	SHOW(setattr(0, &a, 0));
	a = (struct attr){.size = 48, .policy = SCHED_OTHER, .flags = 0x20};
	SHOW(setattr(0, &a, 0));
	a = (struct attr){.size = 48, .policy = -1};
	SHOW(setattr(0, &a, 0));
	SHOW(setattr(0, &a, 1));
	SHOW(setattr(-1, &a, 0));
	SHOW(setattr(0, NULL, 0));
	SHOW(setattr(0, (struct attr *)8, 0));
	a = (struct attr){.size = 47};
	SHOW(setattr(0, &a, 0));
	printf("size %d\n", a.size > 47);
	a = (struct attr){.size = 5000};
	SHOW(setattr(0, &a, 0));
	// A structure larger than the kernel's is allowed if the rest is zero.
	static struct {
		struct attr a;
		char more[200];
	} big = {.a = {.size = 200, .policy = SCHED_OTHER}};
	SHOW(setattr(0, &big.a, 0));
	big.more[10] = 1;
	SHOW(setattr(0, &big.a, 0));
	printf("size %d\n", big.a.size < 100);

	memset(&a, 0x55, sizeof a);
	SHOW(getattr(0, &a, 48, 0));
	printf("size %u, untouched %d\n", a.size, a.util_min == 0x55555555);
	SHOW(getattr(0, &a, 47, 0));
	SHOW(getattr(0, &a, 5000, 0));
	SHOW(getattr(0, &a, 48, 1));
	SHOW(getattr(-1, &a, 48, 0));
	SHOW(getattr(0, NULL, 48, 0));
	SHOW(getattr(0, (struct attr *)8, 48, 0));
	SHOW(getattr(0x3ffffff, &a, 48, 0));
}

static void deadlines(void)
{
	struct attr a = {.size = 48, .policy = SCHED_DEADLINE, .runtime = 1000000, .deadline = 5000000, .period = 10000000};
	SHOW(setattr(0, &a, 0));
	show("deadline");
	SHOW(sched_get_priority_max(SCHED_DEADLINE));
	SHOW(fork());
	SHOW(set(SCHED_FIFO, 3));
	a.period = 0, a.flags = 1 | 4;
	SHOW(setattr(0, &a, 0));
	show("deadline without a period");
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		show("its child");
		_exit(0);
	}
	CHECK(wait_for(p) == 0);
	SHOW(set(SCHED_OTHER, 0));
	show("again");
	a.flags = 0;
	static const struct { uint64_t runtime, deadline, period; } wrong[] = {
		{1000, 5000000, 5000000}, {1024, 5000000, 5000000}, {5000001, 5000000, 5000000}, {1000000, 0, 5000000},
		{1000000, 5000000, 4999999}, {1 << 20, 1UL << 63, 0}, {1 << 20, 1UL << 62, 1UL << 63}, {2000, 99000, 99000},
		{1 << 20, 5000000000, 5000000000}};
	for (int i = 0; i < LEN(wrong); i++) {
		a.runtime = wrong[i].runtime, a.deadline = wrong[i].deadline, a.period = wrong[i].period;
		SHOW(setattr(0, &a, 0));
	}
	SHOW(set(SCHED_OTHER, 0));
	a = (struct attr){.size = 48, .policy = SCHED_DEADLINE, .runtime = 1000000, .deadline = 5000000, .priority = 3};
	SHOW(setattr(0, &a, 0));
	SHOW(set(SCHED_OTHER, 0));
}

// children shows the attributes that children inherit, and those that are reset.
static void children(void)
{
	static const struct { int policy, priority, nice; } list[] = {
		{SCHED_FIFO, 3, 0}, {SCHED_FIFO | SCHED_RESET_ON_FORK, 3, 0}, {SCHED_RR | SCHED_RESET_ON_FORK, 3, 4},
		{SCHED_BATCH | SCHED_RESET_ON_FORK, 0, -5}, {SCHED_OTHER | SCHED_RESET_ON_FORK, 0, 5}};
	for (int i = 0; i < LEN(list); i++) {
		CHECK(set(list[i].policy, list[i].priority) == 0 && setpriority(PRIO_PROCESS, 0, list[i].nice) == 0);
		show("parent");
		pid_t p = fork();
		CHECK(p >= 0);
		if (p == 0) {
			show("child");
			_exit(0);
		}
		CHECK(wait_for(p) == 0);
	}
	CHECK(set(SCHED_OTHER, 0) == 0 && setpriority(PRIO_PROCESS, 0, 0) == 0);
}

static void *thread(void *arg)
{
	struct sched_param p;
	int policy;
	OK(pthread_getschedparam(pthread_self(), &policy, &p));
	printf("%s: policy %d, priority %d\n", (char *)arg, policy, p.sched_priority);
	return NULL;
}

static void threads(void)
{
	pthread_attr_t a;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED));
	OK(pthread_attr_setschedpolicy(&a, SCHED_RR));
	OK(pthread_attr_setschedparam(&a, &(struct sched_param){33}));
	pthread_t t;
	OK(pthread_create(&t, &a, thread, "explicit"));
	finish(t);
	CHECK(set(SCHED_FIFO, 2) == 0);
	finish(start(thread, "inherited"));
	OK(pthread_attr_setschedpolicy(&a, SCHED_OTHER));
	OK(pthread_attr_setschedparam(&a, &(struct sched_param){0}));
	OK(pthread_create(&t, &a, thread, "explicitly none"));
	finish(t);
	SHOWE(pthread_setschedprio(pthread_self(), 4));
	thread("main");
	SHOWE(pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){100}));
	OK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){0}));
	// Each thread has a nice value of its own.
	CHECK(setpriority(PRIO_PROCESS, gettid(), 3) == 0);
	finish(start(thread, "nicer"));
	CHECK(setpriority(PRIO_PROCESS, 0, 0) == 0);
}

// Without privileges.
static void unprivileged(void)
{
	pid_t other = fork();
	CHECK(other >= 0);
	if (other == 0) {
		pause();
		_exit(0);
	}
	pid_t p = fork();
	CHECK(p >= 0);
	if (p == 0) {
		CHECK(set(SCHED_FIFO, 5) == 0);
		CHECK(setresuid(1000, 1000, 1000) == 0);
		struct attr a = {.size = 48, .policy = SCHED_DEADLINE, .runtime = 1000000, .deadline = 5000000};
		SHOW(set(SCHED_FIFO, 6));
		SHOW(set(SCHED_FIFO, 5));
		SHOW(set(SCHED_FIFO, 4));
		SHOW(set(SCHED_RR, 1));
		SHOW(setattr(0, &a, 0));
		SHOW(set(SCHED_OTHER | SCHED_RESET_ON_FORK, 0));
		SHOW(set(SCHED_OTHER, 0));
		SHOW(set(SCHED_FIFO, 1));
		a = (struct attr){.size = 48, .policy = SCHED_OTHER, .nice = 5, .flags = 1};
		SHOW(setattr(0, &a, 0));
		a.nice = 4;
		SHOW(setattr(0, &a, 0));
		SHOW(setpriority(PRIO_PROCESS, 0, 4));
		SHOW(setpriority(PRIO_PROCESS, 0, 6));
		SHOW(setpriority(PRIO_PROCESS, other, 6));
		SHOW(sched_setscheduler(other, SCHED_BATCH, &(struct sched_param){0}));
		SHOW(sched_getscheduler(other));
		cpu_set_t s;
		CHECK(sched_getaffinity(0, sizeof s, &s) == 0);
		SHOW(sched_setaffinity(other, sizeof s, &s));
		SHOW(set(SCHED_IDLE | SCHED_RESET_ON_FORK, 0));
		SHOW(set(SCHED_OTHER | SCHED_RESET_ON_FORK, 0));
		_exit(0);
	}
	CHECK(wait_for(p) == 0);
	SHOW(sched_setscheduler(other, SCHED_RR, &(struct sched_param){9}));
	SHOW(sched_getscheduler(other));
	CHECK(kill(other, SIGKILL) == 0 && wait_for(other) == SIGKILL);
}

int main(void)
{
	classes();
	attributes();
	deadlines();
	children();
	threads();
	unprivileged();
	return 0;
}
