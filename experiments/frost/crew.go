package frost

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/complementary"
)

// crew executes epoch-parallel replicas, several at a time. What becomes of one
// does not depend on which of the crew has executed it, or when.
type crew struct {
	r       *heddle.Replicas
	most    int
	jobs    chan *job
	members int
	all     sync.WaitGroup

	mu   sync.Mutex
	idle int
}

// job is an epoch-parallel replica to be executed, and compared with the
// thread-parallel one.
type job struct {
	ctx   context.Context
	at    *heddle.Checkpoint
	first *heddle.Replica
	order complementary.Order
	most  uint64

	done  chan struct{} // closed when what follows is known
	x     *heddle.Replica
	alike bool
	why   string
	err   error
}

func newCrew(r *heddle.Replicas, most int) *crew {
	return &crew{r: r, most: most, jobs: make(chan *job, 2*window+2)}
}

// give has a job done. No more jobs can wait than those of a window.
func (c *crew) give(j *job) {
	j.done = make(chan struct{})
	c.mu.Lock()
	if c.idle == 0 && c.members < c.most {
		c.members++
		c.all.Add(1)
		go c.member()
	} else {
		c.idle--
	}
	c.mu.Unlock()
	c.jobs <- j
}

// close waits for all jobs.
func (c *crew) close() {
	close(c.jobs)
	c.all.Wait()
}

// member does jobs, one after the other, on a machine of its own.
func (c *crew) member() {
	defer c.all.Done()
	f, err := c.r.NewFollower()
	if err == nil {
		defer f.Close()
	}
	for j := range c.jobs {
		if j.err = err; err == nil {
			j.do(c.r, f)
		}
		close(j.done)
		c.mu.Lock()
		c.idle++
		c.mu.Unlock()
	}
}

func (j *job) do(r *heddle.Replicas, f *heddle.Follower) {
	if j.err = context.Cause(j.ctx); j.err != nil {
		return
	}
	if j.x, j.err = f.Follow(j.ctx, j.at, j.first, j.order, j.most); j.err == nil {
		j.alike, j.why = same(r, j.at, j.first, j.x)
	}
}

// same compares two replicas; one that has failed is like no other.
func same(r *heddle.Replicas, at *heddle.Checkpoint, a, b *heddle.Replica) (alike bool, why string) {
	if a.Failed != "" || b.Failed != "" {
		return false, ""
	}
	return r.Same(at, a, b)
}

// group is the replicas of one execution of an epoch: the thread-parallel one, and
// two more if it was checked.
type group struct {
	replicas []*heddle.Replica
	target   float64 // how long the epoch was to be, in milliseconds
	order    complementary.Order
	jobs     []*job
	alike    [3][3]bool
	differs  []string // in what replicas do that are not alike
	reads    string   // which thread has not read the same in replicas that are alike
}

// begin executes an epoch thread-parallel, and has it executed epoch-parallel if it
// is to be checked.
func (d *driver) begin(ctx context.Context, at *heddle.Checkpoint, number, attempt int) (*group, error) {
	o := d.epochOptions()
	o.Seed, o.Priority = d.another(number, attempt)
	first, err := d.r.Parallel(ctx, at, o)
	if err != nil {
		return nil, err
	}
	g := &group{replicas: []*heddle.Replica{first}, target: o.Length}
	if !d.known.sampler.Next(float64(first.Cycles)) {
		return g, nil
	}
	g.order = d.priorities(first)
	d.known.last = g.order
	for _, order := range []complementary.Order{g.order, g.order.Reverse()} {
		j := &job{ctx: ctx, at: at, first: first, order: order, most: d.most(first)}
		g.jobs = append(g.jobs, j)
		d.crew.give(j)
	}
	return g, nil
}

// ready tells that all replicas are executed.
func (g *group) ready() bool {
	for _, j := range g.jobs {
		select {
		case <-j.done:
		default:
			return false
		}
	}
	return true
}

// wait waits for the replicas, and finds out which are alike.
func (g *group) wait(r *heddle.Replicas, at *heddle.Checkpoint) error {
	for i, j := range g.jobs {
		<-j.done
		if j.err != nil {
			return j.err
		}
		g.compared(i+1, 0, j.alike, j.why)
	}
	for _, j := range g.jobs {
		g.replicas = append(g.replicas, j.x)
	}
	if len(g.jobs) > 0 && !(g.alike[0][1] && g.alike[0][2]) {
		alike, why := same(r, at, g.replicas[1], g.replicas[2])
		g.compared(2, 1, alike, why)
	}
	g.readsOf()
	g.jobs = nil
	return nil
}

// readsOf finds a thread that has not read the same in a replica that is like the
// first.
func (g *group) readsOf() {
	for i := 1; i < len(g.replicas) && g.reads == ""; i++ {
		if id, same := heddle.SameReads(g.replicas[0], g.replicas[i]); g.alike[0][i] && !same {
			g.reads = fmt.Sprintf("thread %d reads something else in the %s replica", id, complementary.Replica(i))
		}
	}
}

func (g *group) compared(i, j int, alike bool, why string) {
	g.alike[i][j], g.alike[j][i] = alike, alike
	if why != "" && !slices.Contains(g.differs, why) {
		g.differs = append(g.differs, why)
	}
}

// keep releases all replicas but one.
func (g *group) keep(one *heddle.Replica) *heddle.Replica {
	for _, x := range g.replicas {
		if x != one {
			x.End.Release()
		}
	}
	return one
}

// abandon waits for the jobs, whose context is done, and releases everything.
func (g *group) abandon() {
	for _, j := range g.jobs {
		<-j.done
		if j.x != nil {
			j.x.End.Release()
		}
	}
	g.keep(nil)
}
