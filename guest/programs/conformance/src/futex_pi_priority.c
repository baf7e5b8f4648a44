// Priorities at futexes: order of waking, order of locking, and inherited priorities, also through chains of owners.
// root: yes
#include "futex.h"

static atomic_uint word, lock, second;
static atomic_int tid, go;

static int field(pid_t tid, int n)
{
	char path[64], buf[512], *at;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	CHECK(read_file(path, buf, sizeof buf) > 0 && (at = strrchr(buf, ')')) != NULL);
	char *word = strtok(at + 4, " ");
	for (int i = 4; i < n; i++)
		word = strtok(NULL, " ");
	return atoi(word);
}

static void asleep(pid_t tid)
{
	char path[64], buf[512];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	do {
		nap();
		CHECK(read_file(path, buf, sizeof buf) > 0);
	} while (strstr(buf, ") S ") == NULL);
}

static void show(const char *what, pid_t tid) { printf("%s: priority %d\n", what, field(tid, 18)); }

struct thread {
	int policy, priority;
	void *(*f)(void *);
	pthread_t t;
	pid_t tid;
};

static void begin(struct thread *x)
{
	pthread_attr_t a;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED));
	OK(pthread_attr_setschedpolicy(&a, x->policy));
	OK(pthread_attr_setschedparam(&a, &(struct sched_param){x->priority}));
	tid = 0;
	OK(pthread_create(&x->t, &a, x->f, x));
	while (tid == 0)
		nap();
	x->tid = tid;
	asleep(x->tid);
}

static atomic_int turn;

static void *plain(void *arg)
{
	struct thread *x = arg;
	tid = gettid();
	CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0);
	printf("woken: %d\n", x->priority);
	turn++;
	return NULL;
}

static const int priorities[] = {0, 5, 1, 0, 9, 5};

static void wake_order(void)
{
	struct thread list[LEN(priorities)];
	for (int i = 0; i < LEN(list); i++) {
		list[i] = (struct thread){.policy = priorities[i] ? SCHED_FIFO : SCHED_OTHER, .priority = priorities[i], .f = plain};
		begin(&list[i]);
	}
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)2, &second, 0)); // the two highest
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)100, &lock, 0));
	turn = 0;
	for (int i = 0; i < LEN(list); i++) {
		CHECK(futex(i < 2 ? &second : &lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
		while (turn == i)
			nap();
	}
	for (int i = 0; i < LEN(list); i++)
		finish(list[i].t);
}

static void *locker(void *arg)
{
	struct thread *x = arg;
	tid = gettid();
	CHECK(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	while (go == 0)
		nap();
	printf("has the lock: %d\n", x->priority);
	CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return NULL;
}

static void lock_order(void)
{
	lock = 0;
	go = 0;
	CHECK(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	show("main", gettid());
	struct thread list[LEN(priorities)];
	for (int i = 0; i < LEN(list); i++) {
		list[i] = (struct thread){.policy = priorities[i] ? SCHED_RR : SCHED_OTHER, .priority = priorities[i], .f = locker};
		begin(&list[i]);
		show("main", gettid());
	}
	struct sched_param p;
	SHOW(sched_getparam(0, &p) == 0 && p.sched_priority == 0); // its own priority does not change
	SHOW(sched_setscheduler(list[0].tid, SCHED_FIFO, &(struct sched_param){20}));
	show("main", gettid());
	SHOW(sched_setscheduler(list[0].tid, SCHED_OTHER, &(struct sched_param){0}));
	show("main", gettid());
	CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	show("main", gettid());
	nap();
	show("the next", list[4].tid);
	go = 1;
	for (int i = 0; i < LEN(list); i++)
		finish(list[i].t);
	CHECK(lock == 0);
}

// middle holds the second lock and waits for the first.
static void *middle(void *arg)
{
	CHECK(futex(&second, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	tid = gettid();
	CHECK(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	CHECK(futex(&second, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return arg;
}

static void *top(void *arg)
{
	tid = gettid();
	struct timespec t = after(CLOCK_REALTIME, 30 * MSEC);
	long r = futex(&second, FUTEX_LOCK_PI_PRIVATE, 0, go == 2 ? &t : NULL, NULL, 0);
	CHECK(r == 0 || errno == ETIMEDOUT);
	if (r == 0)
		CHECK(futex(&second, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return arg;
}

static void chain(void)
{
	lock = second = 0;
	CHECK(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	struct thread m = {.policy = SCHED_FIFO, .priority = 3, .f = middle};
	struct thread a = {.policy = SCHED_FIFO, .priority = 40, .f = top}, b = {.policy = SCHED_FIFO, .priority = 50, .f = top};
	begin(&m);
	show("main", gettid());
	begin(&a);
	show("main", gettid());
	show("middle", m.tid);
	go = 2;
	begin(&b);
	show("main", gettid());
	show("middle", m.tid);
	finish(b.t); // its time-out ends the inheritance
	show("main", gettid());
	show("middle", m.tid);
	go = 0;
	CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	show("main", gettid());
	finish(m.t);
	finish(a.t);
}

static void *requeued(void *arg)
{
	struct thread *x = arg;
	tid = gettid();
	CHECK(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, NULL, &lock, 0) == 0);
	printf("has the lock: %d\n", x->priority);
	CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	return NULL;
}

static void requeue(void)
{
	CHECK(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	struct thread list[LEN(priorities)];
	for (int i = 0; i < LEN(list); i++) {
		list[i] = (struct thread){.policy = priorities[i] ? SCHED_FIFO : SCHED_OTHER, .priority = priorities[i], .f = requeued};
		begin(&list[i]);
	}
	SHOW(futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)100, &lock, 0));
	show("main", gettid());
	CHECK(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
	for (int i = 0; i < LEN(list); i++)
		finish(list[i].t);
}

int main(void)
{
	wake_order();
	lock_order();
	chain();
	requeue();
	return 0;
}
