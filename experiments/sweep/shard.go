package sweep

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Shard is one of Of parts of a plan, which differ in their numbers from 1. A shard is every Of-th run of
// the plan in a shuffled order that depends on the runs alone, so that each has its share of the
// long ones. What is stored makes no difference to it: shards that are started at different times
// divide the runs all the same.
type Shard struct{ Number, Of int }

// maxShards bounds Shard.Of.
const maxShards = 100_000

// UnmarshalText reads "3/8".
func (s *Shard) UnmarshalText(text []byte) error {
	number, of, _ := strings.Cut(string(text), "/")
	var errNumber, errOf error
	s.Number, errNumber = strconv.Atoi(number)
	s.Of, errOf = strconv.Atoi(of)
	if errNumber != nil || errOf != nil || s.Number < 1 || s.Number > s.Of || s.Of > maxShards {
		return form(fmt.Sprintf("I/N, the shard I from 1 to N of at most %d", maxShards))
	}
	return nil
}

// String is the form that UnmarshalText reads; empty for no shard.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Number, s.Of)
}

// storePath is the file of the shard's results, beside the experiment's.
func (s Shard) storePath(store string) string {
	return fmt.Sprintf("%s.shard-%d-of-%d.sqlite", strings.TrimSuffix(store, ".sqlite"), s.Number, s.Of)
}

// ShardStores are the stores of shards beside the experiment's store, sorted.
func (x *Experiment) ShardStores(o Options) ([]string, error) {
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(strings.TrimSuffix(x.StorePath(o), ".sqlite"))
	list, err := filepath.Glob(escaped + ".shard-*-of-*.sqlite")
	if err != nil {
		return nil, errFolder.Wrap(err)
	}
	return list, nil
}

// places finds runs by their slots in a store.
func (p *Plan) places() map[string]int {
	places := make(map[string]int, len(p.Runs))
	for i, run := range p.Runs {
		places[run.slot] = i
	}
	return places
}

// choose lists the numbers of the runs that the options choose, or nil for all.
func (p *Plan) choose(o Options) map[int]bool {
	if o.Shard.Of == 0 && len(o.Runs) == 0 {
		return nil
	}
	repetitions := p.Experiment.Repetitions
	total := len(p.Runs) * repetitions
	chosen := map[int]bool{}
	for _, r := range o.Runs {
		for n := max(r.Low, 1); n <= min(r.High, uint64(total)); n++ {
			chosen[int(n)] = true
		}
	}
	if o.Shard.Of == 0 {
		return chosen
	}
	for i, number := range p.shuffled() {
		inShard := i%o.Shard.Of == o.Shard.Number-1
		if len(o.Runs) == 0 && inShard {
			chosen[number] = true
		} else if !inShard {
			delete(chosen, number)
		}
	}
	return chosen
}

// shuffled lists the numbers of all runs, sorted by the digests of their places.
func (p *Plan) shuffled() []int {
	repetitions := p.Experiment.Repetitions
	numbers := make([]int, len(p.Runs)*repetitions)
	for i := range numbers {
		numbers[i] = i + 1
	}
	slices.SortFunc(numbers, func(a, b int) int {
		return cmp.Or(strings.Compare(p.Runs[(a-1)/repetitions].slot, p.Runs[(b-1)/repetitions].slot), a-b)
	})
	return numbers
}

// leaveStored leaves out the tasks whose results the experiment's own store has. It is only read:
// shards on several hosts may do so at once.
func (s *sweep) leaveStored(tasks []task, path string) ([]task, error) {
	main, err := store.OpenSnapshot(path)
	if store.IsMissing(err) {
		return tasks, nil
	}
	if err != nil {
		return nil, err
	}
	defer main.Close()
	other := &sweep{plan: s.plan, store: main, readOnly: true}
	states, err := other.readStore()
	if err != nil {
		return nil, err
	}
	places := s.plan.places()
	return slices.DeleteFunc(tasks, func(t task) bool {
		if t.native {
			native, ok := other.natives[t.run.NativeKey]
			return ok && native.Failure == ""
		}
		if !states[places[t.run.slot]*s.plan.Experiment.Repetitions+t.repetition-1].stored {
			return false
		}
		s.summary.Stored++
		return true
	}), nil
}

// inputName is how the results name an input of the experiment: not by its path, which
// differs between hosts.
const inputName = "input:"

// nameInputs gives the inputs of the experiment among the files that a run read names that do not
// depend on the folder.
func (p *Plan) nameInputs(files []machine.Input) {
	for i, file := range files {
		if name, ok := strings.CutPrefix(file.Path, p.inputs+"/"); ok {
			files[i].Path = inputName + name
		}
	}
}
