package sweep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errOtherBuild = errs.Define("merge-other-build",
		"the store {file} has results of another heddle: {other}, and this is {own}",
		"The runs of the store were carried out by another build of heddle, whose results need not be equal to those of this one.",
		"Merge with the heddle that carried out the runs, or carry them out with this one: start the shard again.")
	errOtherRuns = errs.Define("merge-other-runs",
		"the store {file} has results of another version of the experiment; the first: {run}",
		"The program, the inputs, the configuration, the user or the path of the experiment were others when the runs of the store were carried out.",
		"Make the program, its inputs and the experiment file the same on all hosts, at the same path, and start the shard again.")
	errOtherExperiment = errs.Define("merge-other-experiment",
		"the store {file} has no run of the experiment {experiment}",
		"The store is one of another experiment, or it is empty because its shard was not started.",
		"Name the stores of this experiment's shards.")
	errSameStore = errs.Define("merge-same-store",
		"the store {file} would be merged into itself",
		"The store of the results is one of those to merge.",
		"Name only the other stores, or another store of the results with `heddle experiment merge --store`.")
	errNoShards = errs.Define("merge-nothing",
		"there are no stores of shards beside {file}",
		"No shard of the experiment has been started here, or the shards' stores are in another folder.",
		"Name the stores after the experiment file.")
)

// Merge takes the results in the stores over into the experiment's: all or, after an error, none. If
// no store is named, those of the shards beside the experiment's store are merged.
func (x *Experiment) Merge(o Options, paths []string) (merged store.Merged, err error) {
	if len(paths) == 0 {
		if paths, err = x.ShardStores(o); err != nil {
			return merged, err
		}
		if len(paths) == 0 {
			return merged, errNoShards.New(x.StorePath(o))
		}
	}
	plan, err := x.Plan(o)
	if err != nil {
		return merged, err
	}
	m := merger{plan: plan, places: plan.places(), builds: map[*store.Store]map[string]string{}, paths: map[*store.Store]string{}}
	defer m.close()
	for _, path := range paths {
		if err := m.open(path, x.StorePath(o)); err != nil {
			return merged, err
		}
	}
	results, err := store.Open(x.StorePath(o))
	if err != nil {
		return merged, err
	}
	defer results.Close()
	if merged, err = results.Merge(m.stores, m.judge); err != nil {
		return merged, err
	}
	for i, slot := range merged.Conflicts {
		if place, ok := m.places[slot]; ok {
			merged.Conflicts[i] = plan.Runs[place].Point.String()
		}
	}
	s := &sweep{plan: plan, store: results} // classes depend on the natives of all
	_, err = s.readStore()
	return merged, errors.Join(err, results.Close())
}

// merger knows the stores that are merged.
type merger struct {
	plan   *Plan
	places map[string]int
	stores []*store.Store
	paths  map[*store.Store]string
	builds map[*store.Store]map[string]string
}

func (m *merger) close() {
	for _, s := range m.stores {
		s.Close()
	}
}

// open opens a store, which must have a run of the plan.
func (m *merger) open(path, own string) error {
	if a, errA := filepath.EvalSymlinks(path); errA == nil {
		if b, errB := filepath.EvalSymlinks(own); errB == nil && isSameFile(a, b) {
			return errSameStore.New(path)
		}
	}
	s, err := store.OpenExisting(path)
	if err != nil {
		return err
	}
	m.stores = append(m.stores, s)
	m.paths[s] = path
	if m.builds[s], err = s.Builds(); err != nil {
		return err
	}
	slots, err := s.Slots()
	if err != nil {
		return err
	}
	known := func(slot string) bool { _, ok := m.places[slot]; return ok }
	if len(slots) > 0 && !slices.ContainsFunc(slots, known) {
		return errOtherExperiment.New(path, m.plan.Experiment.path)
	}
	return nil
}

// judge accepts the current runs of the plan, and those of no run of the plan, which may come into it.
func (m *merger) judge(from *store.Store, slot, key string) (current bool, err error) {
	i, planned := m.places[slot]
	if !planned {
		return false, nil
	}
	if m.plan.Runs[i].Key == key {
		return true, nil
	}
	for build, version := range m.builds[from] {
		if build != m.plan.build {
			return false, errOtherBuild.New(m.paths[from], describeBuild(build, version), describeBuild(m.plan.build, ""))
		}
	}
	return false, errOtherRuns.New(m.paths[from], m.plan.Runs[i].Point)
}

// describeBuild names a build in a sentence.
func describeBuild(build, version string) string {
	text := "SHA-256 " + build[:min(len(build), 12)]
	if version != "" {
		text = fmt.Sprintf("%s (%s)", version, text)
	}
	return text
}

func isSameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
