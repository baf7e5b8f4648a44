// Scheduling calls: policies open to unprivileged users, priorities and their ranges, nice values, intervals, refusals.
#include "conformance.h"

int main(void)
{
	struct sched_param p = {0};
	struct timespec t;
	for (int policy = 0; policy <= 6; policy++)
		printf("policy %d: %d to %d\n", policy, sched_get_priority_min(policy), sched_get_priority_max(policy));
	SHOW(sched_getscheduler(0));
	SHOW(sched_getparam(0, &p));
	printf("priority %d\n", p.sched_priority);
	SHOW(sched_setscheduler(0, SCHED_BATCH, &p));
	SHOW(sched_getscheduler(0));
	SHOW(sched_setscheduler(0, SCHED_OTHER, &p));
	SHOW(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &p));
	SHOW(sched_getscheduler(0));
	SHOW(sched_setparam(0, &p));
	p.sched_priority = 3;
	SHOW(sched_setparam(0, &p));
	SHOW(sched_setscheduler(0, SCHED_OTHER, &p));
	SHOW(sched_setscheduler(0, 77, &p));
	SHOW(sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){0}));
	SHOW(sched_setscheduler(999999999, SCHED_OTHER, &(struct sched_param){0}));
	SHOW(sched_getscheduler(999999999));
	SHOW(sched_getscheduler(-1));
	SHOW(sched_getparam(0, NULL));
	SHOW(sched_rr_get_interval(0, &t));
	CHECK(t.tv_sec == 0 && t.tv_nsec >= 0);
	SHOW(sched_rr_get_interval(-1, &t));
	SHOW(sched_yield());

	// Any user may raise the nice value.
	int base = getpriority(PRIO_PROCESS, 0), nicer = base + 5 > 19 ? 19 : base + 5;
	CHECK(nice(5) == nicer && getpriority(PRIO_PROCESS, 0) == nicer);
	SHOW(setpriority(PRIO_PROCESS, 0, 18) == 0 || nicer == 19 ? 0 : -1);
	CHECK(getpriority(PRIO_PROCESS, getpid()) >= 18);
	SHOW(nice(100));
	SHOW(getpriority(PRIO_PROCESS, 0));
	SHOW(getpriority(77, 0));
	SHOW(getpriority(PRIO_PROCESS, 999999999));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(getpriority(PRIO_PROCESS, 0));
	printf("child: %s\n", status_text(wait_for(pid)));
	return 0;
}
