package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Scheduling policies of sched(7) and the flag of sched_setscheduler.
const (
	schedOther    = 0
	schedFIFO     = 1
	schedRR       = 2
	schedBatch    = 3
	schedIdle     = 5
	schedDeadline = 6

	schedResetOnFork = 0x40000000
)

// keepPolicy as a request leaves the policy as it is (SETPARAM_POLICY of Linux).
const keepPolicy int32 = -1

const (
	mostPriority = 99  // of the real-time classes
	deadlineRank = 100 // above them
)

// roundRobinNS is the time slice of SCHED_RR.
const roundRobinNS = 100_000_000

// schedule is the scheduling state of a thread, as sched_setattr(2) sets it.
type schedule struct {
	policy      uint32
	resetOnFork bool
	nice        int32
	priority    uint32 // of SCHED_FIFO and SCHED_RR
	deadline    deadlineParams
}

// deadlineParams are the parameters of SCHED_DEADLINE, in nanoseconds.
type deadlineParams struct{ runtime, deadline, period, flags uint64 }

// Precedence is a thread's precedence over others, for schedulers that have priorities.
type Precedence struct {
	// Rank is 0 for threads without a real-time class, the priority of SCHED_FIFO and
	// SCHED_RR, and 100 for SCHED_DEADLINE. Priority inheritance raises it.
	Rank int
	// Slice is the time in nanoseconds after which another thread of the same rank runs; 0: when
	// this one yields.
	Slice int64
	// A thread of rank 100 may run for Runtime nanoseconds in each Period, and must have run for
	// them by Deadline after the start of the period: the earliest deadline runs first.
	Runtime, Deadline, Period int64
}

func isFair(policy uint32) bool {
	return policy == schedOther || policy == schedBatch || policy == schedIdle
}

func isRealtime(policy uint32) bool { return policy == schedFIFO || policy == schedRR }

// rank is the thread's rank without inheritance: see Precedence.
func (s *schedule) rank() int {
	switch {
	case s.policy == schedDeadline:
		return deadlineRank
	case isRealtime(s.policy):
		return int(s.priority)
	}
	return 0
}

// kernelPriority is the priority inside Linux, where a lower number runs first.
func (s *schedule) kernelPriority(rank int) int32 {
	if rank > 0 {
		return mostPriority - int32(rank)
	}
	return 120 + s.nice
}

// childSchedule is the schedule of a new child of the thread. EAGAIN: the policy does not allow a
// child.
func (s *schedule) childSchedule() (schedule, unix.Errno) {
	c := *s
	if s.resetOnFork {
		c.resetOnFork = false
		if s.rank() > 0 {
			return schedule{}, 0
		}
		c.nice = max(0, s.nice)
	}
	if c.policy == schedDeadline {
		return c, unix.EAGAIN
	}
	return c, 0
}

// precedence is the thread's precedence, inheritance included.
func (t *Task) precedence() Precedence {
	p := Precedence{Rank: t.schedule.rank()}
	switch t.schedule.policy {
	case schedRR:
		p.Slice = roundRobinNS
	case schedDeadline:
		d := &t.schedule.deadline
		p.Runtime, p.Deadline, p.Period = int64(d.runtime), int64(d.deadline), int64(d.period)
	}
	if t.inherited > p.Rank {
		p = Precedence{Rank: t.inherited, Slice: p.Slice}
	}
	return p
}

// rank is the thread's rank, inheritance included.
func (t *Task) rank() int { return max(t.schedule.rank(), t.inherited) }

// reportPrecedence passes a thread's precedence to the scheduler.
func (t *Task) reportPrecedence() {
	if !t.proc.outside && t.state != dead {
		t.k.sched.SetPrecedence(t.id, t.precedence())
	}
}

// setSchedule changes the thread's schedule.
func (t *Task) setSchedule(s schedule) {
	was := t.precedence()
	t.schedule = s
	if t.precedence() != was {
		t.reportPrecedence()
	}
	t.k.reorderPIWaiter(t)
}

// schedRequest is a requested change of a thread's schedule: struct sched_attr.
type schedRequest struct {
	policy   int32 // or keepPolicy
	flags    uint64
	nice     int32
	priority uint32
	deadline deadlineParams
}

// Flags of sched_setattr(2).
const (
	schedFlagResetOnFork = 0x01
	schedFlagReclaim     = 0x02
	schedFlagOverrun     = 0x04
	schedFlagKeepPolicy  = 0x08
	schedFlagKeepParams  = 0x10
	schedFlagClampMin    = 0x20
	schedFlagClampMax    = 0x40
	schedFlagAll         = 0x7f

	schedFlagsOfDeadline = schedFlagReclaim | schedFlagOverrun
)

// schedulePlan checks a request for another thread as Linux does, and returns the schedule that
// results.
func (t *Task) schedulePlan(target *Task, r schedRequest) (schedule, unix.Errno) {
	s := target.schedule
	n := s
	if r.policy == keepPolicy {
		r.policy = int32(s.policy)
	} else {
		n.resetOnFork = r.flags&schedFlagResetOnFork != 0
	}
	n.policy = uint32(r.policy)
	n.priority = r.priority
	switch {
	case !isFair(n.policy) && !isRealtime(n.policy) && n.policy != schedDeadline,
		r.flags&^schedFlagAll != 0,
		r.priority > mostPriority,
		n.policy == schedDeadline && !r.deadline.valid(),
		isRealtime(n.policy) != (r.priority != 0):
		return s, unix.EINVAL
	}
	if isFair(n.policy) {
		n.nice = r.nice
	}
	if !t.cred.Can(vfs.CapSysNice) && !t.mayReschedule(target, &n) {
		return s, unix.EPERM
	}
	if r.flags&schedFlagKeepParams != 0 { // the policy is kept with them
		s.resetOnFork = n.resetOnFork
		return s, 0
	}
	if r.flags&(schedFlagClampMin|schedFlagClampMax) != 0 {
		return s, unix.EOPNOTSUPP // as of a kernel without utilization clamping
	}
	if n.deadline = (deadlineParams{}); n.policy == schedDeadline {
		n.deadline = r.deadline
		n.deadline.flags = r.flags & schedFlagsOfDeadline
		if n.deadline.period == 0 {
			n.deadline.period = n.deadline.deadline
		}
		if target.affinity != 0 && target.affinity != t.k.allCores() {
			return s, unix.EPERM
		}
		if !t.k.admitsDeadline(target, n.deadline) {
			return s, unix.EBUSY
		}
	}
	return n, 0
}

// mayReschedule reports whether the caller, without CAP_SYS_NICE, may give a thread another
// schedule.
func (t *Task) mayReschedule(target *Task, n *schedule) bool {
	s, limits := &target.schedule, &target.proc.limits
	switch {
	case isFair(n.policy) && n.nice < s.nice && !target.proc.allowsNice(n.nice),
		n.policy == schedDeadline,
		s.policy == schedIdle && n.policy != schedIdle && !target.proc.allowsNice(s.nice),
		t.cred.EUID != target.cred.UID && t.cred.EUID != target.cred.EUID,
		s.resetOnFork && !n.resetOnFork:
		return false
	case isRealtime(n.policy):
		most := limits[rlimitRtprio].Cur
		return (n.policy == s.policy || most > 0) && (n.priority <= s.priority || uint64(n.priority) <= most)
	}
	return true
}

// Bounds of the period of SCHED_DEADLINE, and of its runtime, in nanoseconds: the
// defaults of Linux.
const (
	shortestPeriod  = 100_000
	longestPeriod   = 1 << 22 * 1000
	shortestRuntime = 1 << 10
)

// valid is __checkparam_dl of Linux.
func (d *deadlineParams) valid() bool {
	period := d.period
	if period == 0 {
		period = d.deadline
	}
	const tooLong = 1 << 63
	return d.deadline != 0 && d.runtime >= shortestRuntime && d.deadline < tooLong && d.period < tooLong &&
		d.runtime <= d.deadline && d.deadline <= period && period >= shortestPeriod && period <= longestPeriod
}

// bandwidth is the fraction of a core that the parameters reserve, times 2^20.
func (d *deadlineParams) bandwidth() uint64 {
	if d.period == 0 {
		return 0
	}
	return d.runtime << 20 / d.period
}

// deadlineShare is the fraction of each core that SCHED_DEADLINE may use, times 2^20.
const deadlineShare = 950_000 << 20 / 1_000_000

// admitsDeadline reports whether the cores can serve a thread with these parameters in addition to
// the present ones.
func (k *Kernel) admitsDeadline(target *Task, d deadlineParams) bool {
	total := d.bandwidth()
	for _, t := range k.tasks.All() {
		if t != target {
			total += t.schedule.deadline.bandwidth()
		}
	}
	return total <= deadlineShare*uint64(k.config.Cores)
}
