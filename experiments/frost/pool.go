package frost

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	"github.com/heddle-dmt/heddle/experiments/frost/epoch"
)

// workerPool executes epoch-parallel replicas, several at a time. The outcome of one
// does not depend on which worker has executed it, or when.
type workerPool struct {
	replicas *epoch.Runner
	limit    int
	jobs     chan *replicaJob
	started  int
	running  sync.WaitGroup

	mu      sync.Mutex
	idle    int
	queued  int    // jobs that wait
	waiting uint64 // instructions of the thread-parallel replicas of waiting jobs
}

// worthWorker is how many instructions wait when a further worker is started: its machine translates the program anew.
const worthWorker = 200_000_000

// replicaJob is an epoch-parallel replica to be executed, and compared with the
// thread-parallel one.
type replicaJob struct {
	ctx   context.Context
	at    *epoch.Checkpoint
	first *epoch.Replica
	order complementary.Order
	most  uint64

	done  chan struct{} // closed when the replica's outcome is known
	x     *epoch.Replica
	alike bool
	why   string
	err   error
}

func newWorkerPool(r *epoch.Runner, most int) *workerPool {
	return &workerPool{replicas: r, limit: most, jobs: make(chan *replicaJob, 2*window+2)}
}

// submitJob has a job done. No more jobs can wait than those of a window.
func (c *workerPool) submitJob(j *replicaJob) {
	j.done = make(chan struct{})
	c.mu.Lock()
	c.queued++
	c.waiting += j.first.Instructions
	if c.started == 0 || c.queued > c.idle && c.waiting > worthWorker && c.started < c.limit {
		c.started++
		c.idle++
		c.running.Add(1)
		go c.runWorker()
	}
	c.mu.Unlock()
	c.jobs <- j
}

// waitForJobs waits for all jobs.
func (c *workerPool) waitForJobs() {
	close(c.jobs)
	c.running.Wait()
}

// runWorker does jobs, one after the other, on a machine of its own.
func (c *workerPool) runWorker() {
	defer c.running.Done()
	f, err := c.replicas.NewFollower()
	if err == nil {
		defer f.Close()
	}
	for j := range c.jobs {
		c.mu.Lock()
		c.queued--
		c.waiting -= j.first.Instructions
		c.idle--
		c.mu.Unlock()
		if j.err = err; err == nil {
			j.runReplica(c.replicas, f)
		}
		close(j.done)
		c.mu.Lock()
		c.idle++
		c.mu.Unlock()
	}
}

func (j *replicaJob) runReplica(r *epoch.Runner, f *epoch.Follower) {
	if j.err = context.Cause(j.ctx); j.err != nil {
		return
	}
	if j.x, j.err = f.RunEpochParallel(j.ctx, j.at, j.first, j.order, j.most); j.err == nil {
		j.alike, j.why = compareReplicas(r, j.at, j.first, j.x)
	}
}

// compareReplicas compares two replicas; one that has failed is like no other.
func compareReplicas(r *epoch.Runner, at *epoch.Checkpoint, a, b *epoch.Replica) (alike bool, why string) {
	if a.Failed != "" || b.Failed != "" {
		return false, ""
	}
	return r.CompareStates(at, a, b)
}

// replicaGroup is the replicas of one execution of an epoch: the thread-parallel one, and
// two more if it was checked.
type replicaGroup struct {
	replicas []*epoch.Replica
	target   float64 // how long the epoch was to be, in milliseconds
	grace    float64 // how long it was to continue after output, likewise
	order    complementary.Order
	jobs     []*replicaJob
	alike    [3][3]bool
	differs  []string // the differences between the replicas
	reads    string   // which thread has not read the same in replicas that are alike
}

// startEpoch executes an epoch thread-parallel, and has it executed epoch-parallel if it
// is to be checked. The inputs are those of an earlier execution of it, or nil.
func (d *driver) startEpoch(ctx context.Context, at *epoch.Checkpoint, number, attempt int, inputs *epoch.Inputs) (*replicaGroup, error) {
	o := d.epochOptions()
	o.Inputs = inputs
	o.Seed, o.Priority = d.chooseSchedule(number, attempt)
	first, err := d.replicas.RunThreadParallel(ctx, at, o)
	if err != nil {
		return nil, err
	}
	g := &replicaGroup{replicas: []*epoch.Replica{first}, target: o.Length, grace: o.Grace}
	if !d.known.sampler.Next(float64(first.Cycles)) || first.Alone && first.Failed == "" {
		return g, nil
	}
	g.order = d.orderByPriority(first)
	d.known.last = g.order
	for _, order := range []complementary.Order{g.order, g.order.Reverse()} {
		j := &replicaJob{ctx: ctx, at: at, first: first, order: order, most: d.instructionLimit(first)}
		g.jobs = append(g.jobs, j)
		d.workers.submitJob(j)
	}
	return g, nil
}

// inputs are the operations of clients on the host in the execution.
func (g *replicaGroup) inputs() *epoch.Inputs { return g.replicas[0].Inputs }

// isReady reports whether all replicas are executed.
func (g *replicaGroup) isReady() bool {
	for _, j := range g.jobs {
		select {
		case <-j.done:
		default:
			return false
		}
	}
	return true
}

// waitForReplicas waits for the replicas, and finds out which are alike.
func (g *replicaGroup) waitForReplicas(r *epoch.Runner, at *epoch.Checkpoint) error {
	for i, j := range g.jobs {
		<-j.done
		if j.err != nil {
			return j.err
		}
		g.noteComparison(i+1, 0, j.alike, j.why)
	}
	for _, j := range g.jobs {
		g.replicas = append(g.replicas, j.x)
	}
	if len(g.jobs) > 0 && !(g.alike[0][1] && g.alike[0][2]) {
		alike, why := compareReplicas(r, at, g.replicas[1], g.replicas[2])
		g.noteComparison(2, 1, alike, why)
	}
	g.compareReads()
	g.jobs = nil
	return nil
}

// compareReads finds a thread that has not read the same in a replica that is like the
// first.
func (g *replicaGroup) compareReads() {
	for i := 1; i < len(g.replicas) && g.reads == ""; i++ {
		if id, same := epoch.CompareReads(g.replicas[0], g.replicas[i]); g.alike[0][i] && !same {
			g.reads = fmt.Sprintf("thread %d reads something else in the %s replica", id, complementary.Replica(i))
		}
	}
}

func (g *replicaGroup) noteComparison(i, j int, alike bool, why string) {
	g.alike[i][j], g.alike[j][i] = alike, alike
	if why != "" && !slices.Contains(g.differs, why) {
		g.differs = append(g.differs, why)
	}
}

// releaseAllBut releases all replicas but one.
func (g *replicaGroup) releaseAllBut(one *epoch.Replica) *epoch.Replica {
	for _, x := range g.replicas {
		if x != one {
			x.End.Release()
		}
	}
	return one
}

// abandonJobs waits for the jobs, whose context is done, and releases everything.
func (g *replicaGroup) abandonJobs() {
	for _, j := range g.jobs {
		<-j.done
		if j.x != nil {
			j.x.End.Release()
		}
	}
	g.releaseAllBut(nil)
}
