package frost

import (
	"context"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	"github.com/heddle-dmt/heddle/experiments/frost/epoch"
)

// window is how many epochs are executed ahead of the oldest that is not over. With published ports no epoch is: the
// requests of clients depend on the replies.
const window = 8

// pendingEpoch is an epoch that the thread-parallel replica has gone through, and that
// was not rolled back.
type pendingEpoch struct {
	number    int
	begin     *epoch.Checkpoint // where it begins
	replicas  *replicaGroup
	before    knowledge // with the findings of its own execution, but for the length
	cancel    context.CancelFunc
	firstErr  error // of its thread-parallel replica
	committed bool  // it is committed
}

// runPipeline executes epochs until the program ends: the thread-parallel replica runs
// ahead, as if no epoch had a race, and epochs are committed in order.
//
// The checkpoints that are kept are a function of the program alone: an epoch that
// is over keeps its begin until it has to make room. So the memory in use, which
// the guest can see, does not depend on how fast the replicas are on the host.
func (d *driver) runPipeline(ctx context.Context) error {
	for n := 1; ctx.Err() == nil; {
		switch {
		case d.canStartEpoch(n):
			d.startPending(ctx, n)
			n++
			for f := d.oldestPending(); f != nil && f.isReady(); f = d.oldestPending() {
				if err := d.commitOldest(ctx, f, &n); err != nil {
					return err
				}
			}
		case len(d.pending) == 0:
			return nil
		case !d.pending[0].committed:
			if err := d.commitOldest(ctx, d.pending[0], &n); err != nil {
				return err
			}
		default:
			d.pending[0].begin.Release()
			d.pending = d.pending[1:]
		}
	}
	return context.Cause(ctx)
}

// canStartEpoch reports whether the next epoch, of this number, can be executed. After a race few epochs are executed ahead: with
// the next race the work would be lost.
func (d *driver) canStartEpoch(number int) bool {
	n := len(d.pending)
	if n > 0 && (d.replicas.Scarce() || d.pending[n-1].firstErr != nil) {
		return false
	}
	return n < min(d.ahead, number-d.raceAt) && !d.at.Done()
}

// oldestPending is the first epoch that is not over, nil if all are.
func (d *driver) oldestPending() *pendingEpoch {
	for _, f := range d.pending {
		if !f.committed {
			return f
		}
	}
	return nil
}

// startPending executes an epoch thread-parallel, and has it executed epoch-parallel.
func (d *driver) startPending(ctx context.Context, number int) {
	ctx, land := context.WithCancel(ctx)
	f := &pendingEpoch{number: number, begin: d.at, cancel: land}
	length := d.known.length
	f.replicas, f.firstErr = d.startEpoch(ctx, d.at, number, 0, nil)
	f.before = d.known
	f.before.length = length
	f.before.counts = maps.Clone(d.known.counts)
	d.pending = append(d.pending, f)
	if f.firstErr == nil {
		d.known.length.Grow()
		d.at = f.replicas.replicas[0].End
	}
}

// isReady reports whether all waits are over.
func (f *pendingEpoch) isReady() bool { return f.firstErr != nil || f.replicas.isReady() }

// commitOldest commits the oldest epoch that is not over, in the end. If it has a race,
// the execution ahead of it is abandoned, and next says which epoch is executed
// next.
func (d *driver) commitOldest(ctx context.Context, f *pendingEpoch, next *int) error {
	if f.firstErr != nil {
		return f.firstErr
	}
	if err := f.replicas.waitForReplicas(d.replicas, f.begin); err != nil {
		return err
	}
	e := d.judgeReplicas(f.number, 0, f.replicas)
	if e.Combination == "" || e.Combination == "A-AA" || d.options.DetectOnly {
		f.cancel()
		f.committed = true
		if e.Combination != "" && !d.options.DetectOnly {
			e.Commit = complementary.ThreadParallel.String()
		}
		e.Committed = true
		d.report.failed = f.replicas.replicas[0].Failed
		return d.writeOutput(f.replicas.releaseAllBut(f.replicas.replicas[0]))
	}
	d.cancelLater(f)
	d.raceAt = f.number
	*next = f.number + 1
	choice, err := d.resolveRace(ctx, f.number, f.begin, f.replicas, e)
	f.cancel()
	d.pending, d.at = nil, f.begin
	if err != nil {
		return err
	}
	f.begin.Release()
	d.at = choice.End
	return d.writeOutput(choice)
}

// cancelLater abandons the execution ahead of an epoch, and returns to its begin.
func (d *driver) cancelLater(f *pendingEpoch) {
	end := f.replicas.replicas[0].End
	d.cancelEpochs(func(x *pendingEpoch) bool { return x.number > f.number })
	for _, x := range d.pending {
		if x.number < f.number {
			x.begin.Release()
		}
	}
	d.pending, d.at = []*pendingEpoch{f}, end
	d.known = f.before
	d.replicas.Return(f.begin, end)
}

// cancelEpochs gives up epochs, but not where the first of them begins. The last one goes
// first: one's end is the next one's begin.
func (d *driver) cancelEpochs(which func(*pendingEpoch) bool) {
	for _, f := range d.pending {
		if which(f) {
			f.cancel()
		}
	}
	for _, f := range slices.Backward(d.pending) {
		if which(f) && f.replicas != nil {
			f.replicas.abandonJobs()
		}
	}
}

// abortPending gives up all epochs that are not over. The run is at the end of the last
// one that is.
func (d *driver) abortPending() {
	d.cancelEpochs(func(f *pendingEpoch) bool { return !f.committed })
	if first := d.oldestPending(); first != nil {
		d.at = first.begin
	}
	for _, f := range d.pending {
		if f.committed {
			f.begin.Release()
		}
	}
	d.pending = nil
}
