package symtrace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/sharing"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Result is a symbolic trace.
type Result struct {
	Trace *model.Trace
	// Threads are those of the trace, in its order, and Where its events are, by
	// event.
	Threads     []ThreadTrace
	Coordinates []Coordinate
	// Shared are the addresses that threads share, and Excluded how many pieces of
	// eight bytes would be if Options.Only did not leave them out.
	Shared   []Range
	Excluded int
	// Passes is how often the threads were followed until it was known which memory they share, and
	// Instructions how many the last pass executed.
	Passes       int
	Instructions uint64
	// Faults is how many threads can fault where their paths end.
	Faults int
	// Guesses is how many values were guessed: that there is no schedule then is not
	// known for others.
	Guesses int
	// Assumed counts the conditions of the trace that no path implies, such as that an address has
	// one value, and OtherOutcomes the calls that may have returned another value: under other
	// values there may be a schedule.
	Assumed, OtherOutcomes int
	// Facts has the findings of this Build, for Options.Facts of another one.
	Facts *Facts
}

// maxPasses is how often threads are followed at most.
const maxPasses = 64

// Build follows all threads of a run along their paths. Prefix is how many
// instructions the first thread has executed where the image is.
func Build(image *Image, profile *paths.Profile, first arch.ThreadID, prefix uint64, o Options) (*Result, error) {
	all := map[arch.ThreadID]*paths.Track{}
	for i := range profile.Threads {
		t := &profile.Threads[i]
		all[t.ID] = paths.NewTrack(profile, t)
		if o.Hang {
			all[t.ID].CutEndlessLoop()
		}
	}
	k := o.startingFacts()
	patience := fewBacktracks
	for round := 1; ; round++ {
		b := newPass(image, profile, all, o, k)
		b.maxBacktracks = patience
		if err := b.runThreads(first, prefix); err != nil {
			return nil, err
		}
		found := 0
		if !o.OnlyShared {
			found = b.sharing.FindConflicts()
		}
		history := b.collectValues()
		before := k.writers
		locks := b.lockAddresses()
		did := b.collectInteractions()
		k.interactionsUnknown = !did.equal(k.interactions) || !did.equal(b.interactions)
		stable := maps.Equal(before, b.sharedWriters()) && slices.Equal(locks, k.locks) && !k.interactionsUnknown
		past := b.sharedWrites()
		stable = stable && maps.EqualFunc(past, k.past, sharing.Writes.Equal)
		k.past = past
		k.writers, k.writes, k.locks, k.interactions = b.sharedWriters(), b.constantWrites(), locks, did
		if found == 0 && !b.arraysChanged && stable {
			if why := b.offPathReason(); why != nil && (round >= maxPasses || patience == maxBacktracks && sameValues(history, b.knownValues)) {
				return nil, why
			} else if why == nil {
				return b.buildResult(round, k), nil
			}
			if sameValues(history, b.knownValues) {
				patience = min(maxBacktracks, 8*patience)
			}
		}
		if round >= maxPasses {
			return nil, fmt.Errorf("the memory that the threads share was not found in %d passes", round)
		}
		k.values = history
	}
}

// sharedWrites has the facts about writes to shared memory for the next pass. Elements of arrays
// are left out, as a thread's own memory does not hold them.
func (b *pass) sharedWrites() map[uint64]sharing.Writes {
	past := b.sharing.Writes()
	for o, a := range b.arrays {
		for g := o / symmem.Granule; g <= (o+a.object.Size-1)/symmem.Granule; g++ {
			past[g] = sharing.Writes{}
		}
	}
	return past
}

// sharedWriters maps shared granules to the thread that writes them. A thread's own memory does not
// hold its writes to elements of arrays, so arrays have several writers.
func (b *pass) sharedWriters() map[uint64]int {
	all := b.sharing.Writers()
	for o, a := range b.arrays {
		for g := o / symmem.Granule; g <= (o+a.object.Size-1)/symmem.Granule; g++ {
			all[g] = sharing.Several
		}
	}
	return all
}

func newPass(image *Image, profile *paths.Profile, all map[arch.ThreadID]*paths.Track, o Options, k *Facts) *pass {
	b := &pass{
		image: image, profile: profile, options: o, pool: symbolic.NewPool(), sharing: sharing.NewTracker(k.granules, k.writers, k.past), paths: all,
		arrays: k.arrays, notArrays: k.notArrays, blocks: k.blocks, knownValues: k.values, previousWrites: k.writes,
		previousLocks: k.locks, interactions: k.interactions.clone(), interactionsUnknown: k.interactionsUnknown,
		byPointer: map[uint64]*threadExec{}, objectIDs: map[uint64]event.ObjectID{}, lockKinds: map[uint64]model.LockKind{}, barrierCounts: map[uint64]int{}, symbolBits: map[string]int{},
		namedExprs:   map[string]*symbolic.Expr{},
		symbolPlaces: map[string]symbolPlace{}, guesses: map[string]symbolic.Value{},
		ownValues: map[string]symbolic.Value{}, startedThreads: map[arch.ThreadID]bool{}, connected: map[uint64]bool{},
	}
	b.outputDiffers = b.pool.Bool(false)
	if o.MayShare != nil {
		b.sharing.Only = func(addr uint64) bool { return addr >= ownMemory || o.MayShare(addr) }
	}
	return b
}

// offPathReason is why a thread does not take its path.
func (b *pass) offPathReason() error {
	for _, w := range b.threads {
		if w.offPathReason != nil {
			return w.offPathReason
		}
	}
	return nil
}
