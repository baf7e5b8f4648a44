package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

func planTable8(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "accesses", Key: "accesses", Number: true},
			{Name: "paper", Key: "paper_accesses", Number: true},
			{Name: "distance, free", Key: "free", Number: true},
			{Name: "under TERN's schedule", Key: "tern", Number: true},
			{Name: "times less", Key: "times", Number: true},
			{Name: "paper", Key: "paper_times", Number: true},
			{Name: "hybrid schedule", Key: "hybrid", Number: true},
			whyColumn,
		},
		Notes: []string{
			fmt.Sprintf("Mean edit distance of the traces of two of %d runs: of accesses by the program's own code to memory that more than one thread accesses, each by thread, instruction and address.", s.Runs),
			"The paper traces accesses to globals and the heap, a crude approximation of shared memory, of PBZip2 decompressing 2 MB, and of Apache (7.97 times less), which is not among ours.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return measureDistances(ctx, s, &x, subject, dir)
		}, s.Runs))
	}
	return p, nil
}

// measureDistances compares the traces of a subject's runs.
func measureDistances(ctx context.Context, s *study.Settings, x *study.ProgramStudy, subject *study.Subject, dir string) ([]string, error) {
	r, err := subject.Record(ctx, dir, s.Seed)
	if err != nil {
		return nil, err
	}
	code, err := programCode(r)
	if err != nil {
		return nil, err
	}
	operations, err := r.Make(ctx, peregrine.Options{SyncOnly: true})
	if err != nil {
		return nil, err
	}
	constrained, err := r.Make(ctx, peregrine.Options{})
	if err != nil {
		return nil, err
	}
	ways := []func(machine.Config) machine.Config{
		func(c machine.Config) machine.Config { return c },
		func(c machine.Config) machine.Config {
			return r.ConfigUnder(c, operations, enforce.Options{SyncOnly: true, Free: true})
		},
		func(c machine.Config) machine.Config {
			return r.ConfigUnder(c, constrained, enforce.Options{Free: true})
		},
	}
	var runs [][]memoryAccess
	for i, way := range ways {
		s.Say("  %s: %d runs, way %d of %d", x.Name, s.Runs, i+1, len(ways))
		for k := range s.Runs {
			c := way(r.VariedConfig(k))
			c.Cores, c.Sched = r.Config(1).Cores, x.Sched
			run, err := recordAccesses(ctx, c, code, filepath.Join(dir, "accesses"))
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
	}
	runs = sharedAccesses(runs)
	mean := make([]float64, len(ways))
	for i := range ways {
		mean[i] = pairwiseMean(runs[i*s.Runs : (i+1)*s.Runs])
	}
	length := 0
	for _, run := range runs[:s.Runs] {
		length += len(run)
	}
	times := "-"
	if mean[1] > 0 {
		times = fmt.Sprintf("%.2f", mean[0]/mean[1])
	}
	return []string{
		x.Name, fmt.Sprint(length / s.Runs), x.PaperValue("accesses"), fmt.Sprintf("%.1f", mean[0]), fmt.Sprintf("%.1f", mean[1]),
		times, x.PaperValue("times"), fmt.Sprintf("%.1f", mean[2]), x.Why,
	}, nil
}

// memoryAccess is an access of a thread.
type memoryAccess struct {
	thread   arch.ThreadID
	pc, addr arch.Addr
	store    bool
}

// programCode returns the addresses of the program's own code, which are the same in all
// its runs.
func programCode(r *study.RecordedRun) ([]memlog.Range, error) {
	t, err := trace.Open(r.Trace())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var list []memlog.Range
	for m, err := range trace.Get[event.Mapping](t, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if m.Name == r.Config(1).Args[0] {
			list = append(list, memlog.Range{Start: m.Addr, End: m.Addr + arch.Addr(m.Size)})
		}
	}
	return list, nil
}

// recordAccesses runs a configuration and returns the accesses that the given code makes.
func recordAccesses(ctx context.Context, c machine.Config, code []memlog.Range, name string) ([]memoryAccess, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c.Record = &machine.Record{To: file, Memory: &recorder.MemoryConfig{Code: code}}
	if _, _, err := study.Run(ctx, c); err != nil {
		return nil, err
	}
	t, err := trace.Open(name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var list []memoryAccess
	for m, err := range memtrace.Read(t, memtrace.Select{}) {
		if err != nil {
			return nil, err
		}
		if m.Kind == event.Load || m.Kind == event.Store {
			list = append(list, memoryAccess{m.Thread, m.PC, m.Addr, m.Kind == event.Store})
		}
	}
	return list, nil
}

// sharedAccesses removes accesses to addresses that only one thread accesses in all runs.
func sharedAccesses(runs [][]memoryAccess) [][]memoryAccess {
	first, several := map[arch.Addr]arch.ThreadID{}, map[arch.Addr]bool{}
	for _, run := range runs {
		for _, a := range run {
			if t, known := first[a.addr]; !known {
				first[a.addr] = a.thread
			} else if t != a.thread {
				several[a.addr] = true
			}
		}
	}
	out := make([][]memoryAccess, len(runs))
	for i, run := range runs {
		for _, a := range run {
			if several[a.addr] {
				out[i] = append(out[i], a)
			}
		}
	}
	return out
}

// pairwiseMean is the mean edit distance between two of some sequences.
func pairwiseMean[T comparable](all [][]T) float64 {
	sum, pairs := 0, 0
	for i := range all {
		for j := range i {
			sum += editDistance(all[i], all[j])
			pairs++
		}
	}
	return float64(sum) / float64(max(pairs, 1))
}

// editDistance is the number of elements that have to be changed, inserted or removed to
// turn one sequence into another (R. A. Wagner and M. J. Fischer, The string-to-string
// correction problem, 1974).
func editDistance[T comparable](a, b []T) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		before := row[0] // above to the left
		row[0] = i + 1
		for j, y := range b {
			change := before
			if x != y {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
