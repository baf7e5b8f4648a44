package find

import (
	"math"
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// planner chooses the kinds of schedules. Strategies and models take turns in every second schedule; in the
// others the kind is chosen that has found most new pairs of places at which threads switch, by the
// rule UCB1 of Auer, Cesa-Bianchi and Fischer, Finite-time analysis of the multiarmed bandit problem (2002).
type planner struct {
	strategies []string
	models     []memmodel.Model
	arms       []arm
	planned    int // schedules that may preempt
	pairs      map[switchPair]bool
	bounds     map[Kind]*boundProgress
	feedback   feedback
	isOwn      func(arch.Addr) bool
}

// arm is a kind with its results: the number of schedules, and of those that found something new.
type arm struct {
	kind          Kind
	tried, useful float64
}

func newPlanner(o *Options) planner {
	p := planner{
		strategies: o.Strategies, models: o.Models, pairs: map[switchPair]bool{}, bounds: map[Kind]*boundProgress{},
		feedback: newFeedback(),
	}
	if len(p.strategies) == 0 {
		p.strategies = points.Names()
	}
	for _, focused := range []bool{false, true} {
		for _, strategy := range p.strategies {
			for _, model := range p.models {
				p.arms = append(p.arms, arm{kind: Kind{Strategy: strategy, Model: model, Focused: focused}})
			}
		}
	}
	return p
}

// nextKind is the kind of the next schedule.
func (p *planner) nextKind() Kind {
	n := p.planned
	p.planned++
	if n%2 == 0 {
		return p.kindInTurn(n/2, p.models)
	}
	total := 0.0
	for _, a := range p.arms {
		total += a.tried
	}
	best, highest := 0, -1.0
	for i, a := range p.arms {
		value := math.Inf(1)
		if a.tried > 0 {
			value = a.useful/a.tried + math.Sqrt(2*math.Log(total)/a.tried)
		}
		if value > highest {
			best, highest = i, value
		}
	}
	p.arms[best].tried++ // its result is added later
	return p.arms[best].kind
}

// kindInTurn is the n-th kind where they take turns: models, then strategies, then whether schedules decide at one
// line.
func (p *planner) kindInTurn(n int, models []memmodel.Model) Kind {
	kind := Kind{Model: models[n%len(models)]}
	n /= len(models)
	kind.Strategy = p.strategies[n%len(p.strategies)]
	round := n / len(p.strategies)
	kind.Focused = (round+n%len(p.strategies))%2 == 1
	if kind.Strategy == points.SURW { // most failures are of one object
		kind.Focused = round%8 != 7
	}
	return kind
}

// noteResult takes what a schedule has found.
func (p *planner) noteResult(x *schedule, newPairs []switchPair, observed *points.Observation) {
	useful := false
	for _, pair := range newPairs {
		useful = useful || !p.pairs[pair]
		p.pairs[pair] = true
	}
	if observed != nil {
		useful = p.feedback.note(x.estimate.Constraints, observed) || useful
	}
	for i := range p.arms {
		if a := &p.arms[i]; a.kind == x.kind && useful {
			a.useful++
		}
	}
}

// boundProgress is how many schedules of each bound were planned, for the strategies that have bounds.
type boundProgress struct {
	bound int
	ranks [mostBound + 1]uint64
}

// mostBound is the greatest bound. A bound has its turn with at most boundSchedules*4^bound schedules, and then the next
// one, as in iterative bounding; after the greatest one the first continues.
const (
	mostBound      = 4
	boundSchedules = 16
)

// next returns the bound of the next schedule and its number among those of the bound, of which there are total.
func (b *boundProgress) next(least int, total func(bound int) uint64) (bound int, rank uint64) {
	b.bound = max(b.bound, least)
	for range mostBound {
		turn := uint64(boundSchedules) << (2 * b.bound)
		if done := b.ranks[b.bound]; done < total(b.bound) && (done == 0 || done%turn != 0 || b.ranks[min(b.bound+1, mostBound)] > done) {
			break
		}
		if b.bound++; b.bound > mostBound {
			b.bound = least
		}
	}
	rank = b.ranks[b.bound]
	b.ranks[b.bound]++
	return b.bound, rank
}

// planBatch returns the schedules that are tried next. They depend on the results of earlier batches
// alone, so that the number of workers changes nothing.
func (s *search) planBatch() (list []*schedule) {
	first := s.report.Tried
	size := min(max(firstBatch, first/4), mostBatch)
	if first < s.outputs.serialRuns {
		size = s.outputs.serialRuns - first
	}
	for n := first; n < min(first+size, s.options.Schedules); n++ {
		if n >= s.outputs.serialRuns && len(s.suspects) > 0 {
			s.suspects[0].number = n
			list, s.suspects = append(list, s.suspects[0]), s.suspects[1:]
			continue
		}
		list = append(list, s.planSchedule(n))
	}
	return list
}

// Sizes of batches: small ones at first, so that what a schedule finds is soon used.
const (
	firstBatch = 4
	mostBatch  = 256
)

// planSchedule plans the next schedule, whose number is n, from 0 on. The first ones are without preemption.
func (s *search) planSchedule(n int) *schedule {
	seed := rand.Mix(s.seedBase() ^ uint64(n))
	if n < s.outputs.serialRuns {
		return &schedule{number: n, kind: Kind{Strategy: points.Serial}, seed: seed, limits: s.limits, mutexes: s.mutexes}
	}
	return s.scheduleOf(n, s.planner.nextKind(), seed)
}

// scheduleOf makes a schedule of a kind. One that is focused decides only at accesses to one line, which
// the seed draws; those of SURW decide everywhere and select that line.
func (s *search) scheduleOf(n int, kind Kind, seed uint64) *schedule {
	x := &schedule{
		number: n, kind: kind, seed: seed, limits: s.limits, mutexes: s.mutexes, lines: s.points.lines, pairs: s.planner.pairs,
		at: s.points.at, stops: s.points.stops,
		estimate: points.Estimate{Points: s.most, Left: s.points.operations, Creators: s.points.creators},
	}
	if kind.Focused && len(s.points.focuses) > 0 {
		l := s.drawFocus(rand.SplitMix(x.seed))
		x.estimate.Left, x.selected = l.operations, l.number
		if kind.Strategy != points.SURW && kind.Strategy != points.RFF {
			x.at, x.estimate.Points = l.at, l.total
		}
	}
	s.planner.complete(x, s.report.Threads)
	return x
}

// complete adds what a strategy needs besides numbers of operations.
func (p *planner) complete(x *schedule, threads int) {
	e, kind := &x.estimate, x.kind
	if kind.Strategy == points.RFF {
		e.Constraints = p.feedback.plan(rand.SplitMix(rand.Mix(x.seed)), kind.Focused, p.isOwn)
	}
	least, per := 0, uint64(1)
	switch kind.Strategy {
	case points.Delay:
	case points.Preempt:
		per = uint64(max(1, threads-1))
	case points.Period:
		least, per = 1, uint64(max(1, threads))
	default:
		return
	}
	b := p.bounds[kind]
	if b == nil {
		b = &boundProgress{}
		p.bounds[kind] = b
	}
	e.Bound, e.Rank = b.next(least, func(bound int) uint64 {
		total := points.DelaySchedules(bound, e.Points)
		for range bound {
			high, low := bits.Mul64(total, per)
			if high > 0 {
				return math.MaxUint64
			}
			total = low
		}
		return total
	})
}

// seedBase sets the seeds of schedules apart from those of a search with another seed.
func (s *search) seedBase() uint64 { return bits.RotateLeft64(s.config.Seed, 32) }

// drawFocus draws the line at which a schedule decides: in seven of eight cases one that the program's own
// file accesses, since most failures are its own and not of libraries.
func (s *search) drawFocus(draw rand.SplitMix) *line {
	among := s.points.focuses
	if len(s.points.ownFocuses) > 0 && draw.Below(8) > 0 {
		among = s.points.ownFocuses
	}
	sum := uint64(0)
	for _, l := range among {
		sum += l.weight
	}
	n := draw.Below(sum)
	for _, l := range among {
		if n < l.weight {
			return l
		}
		n -= l.weight
	}
	panic("bug: a number that is not below the sum")
}
