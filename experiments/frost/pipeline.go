package frost

import (
	"context"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/complementary"
)

// window is how many epochs are executed ahead of the oldest that is not over.
const window = 8

// flight is an epoch that the thread-parallel replica has gone through, and that
// was not rolled back.
type flight struct {
	number int
	at     *heddle.Checkpoint // where it begins
	g      *group
	before knowledge // with what its own execution has shown, but for the length
	land   context.CancelFunc
	err    error // of its thread-parallel replica
	over   bool  // it is committed
}

// pipeline executes epochs until the program ends: the thread-parallel replica runs
// ahead, as if no epoch had a race, and epochs are committed in order.
//
// The checkpoints that are kept are a function of the program alone: an epoch that
// is over keeps its begin until it has to make room. So what memory is in use, which
// the guest can see, does not depend on how fast the replicas are on the host.
func (d *driver) pipeline(ctx context.Context) error {
	for n := 1; ctx.Err() == nil; {
		switch {
		case d.ahead():
			d.launch(ctx, n)
			n++
			for f := d.oldest(); f != nil && f.ready(); f = d.oldest() {
				if err := d.settle(ctx, f, &n); err != nil {
					return err
				}
			}
		case len(d.flights) == 0:
			return nil
		case !d.flights[0].over:
			if err := d.settle(ctx, d.flights[0], &n); err != nil {
				return err
			}
		default:
			d.flights[0].at.Release()
			d.flights = d.flights[1:]
		}
	}
	return context.Cause(ctx)
}

// ahead tells whether the next epoch can be executed.
func (d *driver) ahead() bool {
	n := len(d.flights)
	if n > 0 && (d.r.Scarce() || d.flights[n-1].err != nil) {
		return false
	}
	return n < window && !d.at.Done()
}

// oldest is the first epoch that is not over; nil: there is none.
func (d *driver) oldest() *flight {
	for _, f := range d.flights {
		if !f.over {
			return f
		}
	}
	return nil
}

// launch executes an epoch thread-parallel, and has it executed epoch-parallel.
func (d *driver) launch(ctx context.Context, number int) {
	ctx, land := context.WithCancel(ctx)
	f := &flight{number: number, at: d.at, land: land}
	length := d.known.length
	f.g, f.err = d.begin(ctx, d.at, number, 0)
	f.before = d.known
	f.before.length = length
	f.before.counts = maps.Clone(d.known.counts)
	d.flights = append(d.flights, f)
	if f.err == nil {
		d.known.length.Grow()
		d.at = f.g.replicas[0].End
	}
}

// ready tells that nothing is to be waited for.
func (f *flight) ready() bool { return f.err != nil || f.g.ready() }

// settle commits the oldest epoch that is not over, in the end. If it has a race,
// what was executed ahead of it is given up, and next says which epoch is executed
// next.
func (d *driver) settle(ctx context.Context, f *flight, next *int) error {
	if f.err != nil {
		return f.err
	}
	if err := f.g.wait(d.r, f.at); err != nil {
		return err
	}
	e := d.judge(f.number, 0, f.g)
	if e.Combination == "" || e.Combination == "A-AA" || d.o.DetectOnly {
		f.land()
		f.over = true
		if e.Combination != "" && !d.o.DetectOnly {
			e.Commit = complementary.ThreadParallel.String()
		}
		e.Committed = true
		d.report.failed = f.g.replicas[0].Failed
		return d.emit(f.g.keep(f.g.replicas[0]))
	}
	d.squash(f)
	*next = f.number + 1
	choice, err := d.resolve(ctx, f.number, f.at, f.g, e)
	f.land()
	d.flights, d.at = nil, f.at
	if err != nil {
		return err
	}
	f.at.Release()
	d.at = choice.End
	return d.emit(choice)
}

// squash gives up what was executed ahead of an epoch, and returns to where it
// begins.
func (d *driver) squash(f *flight) {
	end := f.g.replicas[0].End
	d.drop(func(x *flight) bool { return x.number > f.number })
	for _, x := range d.flights {
		if x.number < f.number {
			x.at.Release()
		}
	}
	d.flights, d.at = []*flight{f}, end
	d.known = f.before
	d.r.Return(f.at, end)
}

// drop gives up epochs, but not where the first of them begins. The last one goes
// first: one's end is the next one's begin.
func (d *driver) drop(which func(*flight) bool) {
	for _, f := range d.flights {
		if which(f) {
			f.land()
		}
	}
	for _, f := range slices.Backward(d.flights) {
		if which(f) && f.g != nil {
			f.g.abandon()
		}
	}
}

// ground gives up all epochs that are not over. The run is at the end of the last
// one that is.
func (d *driver) ground() {
	d.drop(func(f *flight) bool { return !f.over })
	if first := d.oldest(); first != nil {
		d.at = first.at
	}
	for _, f := range d.flights {
		if f.over {
			f.at.Release()
		}
	}
	d.flights = nil
}
