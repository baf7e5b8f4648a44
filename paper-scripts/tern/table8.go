package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

func table8(s *study.Settings) (*study.Plan, error) {
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
			why,
		},
		Notes: []string{
			fmt.Sprintf("Mean edit distance of the traces of two of %d runs: of accesses by the program's own code to memory that more than one thread accesses, each by thread, instruction and address.", s.Runs),
			"The paper traces accesses to globals and the heap, a crude approximation of shared memory, of PBZip2 decompressing 2 MB, and of Apache (7.97 times less), which is not among ours.",
		},
	}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return distances(ctx, s, &x, subject, dir)
		}, s.Runs))
	}
	return p, nil
}

// distances compares the traces of a subject's runs.
func distances(ctx context.Context, s *study.Settings, x *study.Studied, subject *study.Subject, dir string) ([]string, error) {
	r, err := subject.Record(ctx, dir, s.Seed)
	if err != nil {
		return nil, err
	}
	code, err := ownCode(r)
	if err != nil {
		return nil, err
	}
	operations, err := r.Make(ctx, schedules.Options{SyncOnly: true})
	if err != nil {
		return nil, err
	}
	constrained, err := r.Make(ctx, schedules.Options{})
	if err != nil {
		return nil, err
	}
	ways := []func(heddle.Config) heddle.Config{
		func(c heddle.Config) heddle.Config { return c },
		func(c heddle.Config) heddle.Config {
			return r.Under(c, operations, sched.EnforceOptions{SyncOnly: true, Free: true})
		},
		func(c heddle.Config) heddle.Config { return r.Under(c, constrained, sched.EnforceOptions{Free: true}) },
	}
	var runs [][]access
	for i, way := range ways {
		s.Say("  %s: %d runs, way %d of %d", x.Name, s.Runs, i+1, len(ways))
		for k := range s.Runs {
			c := way(r.Varied(k))
			c.Cores, c.Sched = r.Config(1).Cores, x.Sched
			run, err := accesses(ctx, c, code, filepath.Join(dir, "accesses"))
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
	}
	runs = shared(runs)
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
		x.Name, fmt.Sprint(length / s.Runs), x.Says("accesses"), fmt.Sprintf("%.1f", mean[0]), fmt.Sprintf("%.1f", mean[1]),
		times, x.Says("times"), fmt.Sprintf("%.1f", mean[2]), x.Why,
	}, nil
}

// access is one that a thread makes.
type access struct {
	thread   event.ThreadID
	pc, addr event.Addr
	store    bool
}

// ownCode is where the program's own code is in its runs, which is the same in all.
func ownCode(r *study.Recorded) ([]emu.AddrRange, error) {
	t, err := trace.Open(r.Trace())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var list []emu.AddrRange
	for m, err := range trace.Get[event.Mapping](t, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if m.Name == r.Config(1).Args[0] {
			list = append(list, emu.AddrRange{Start: m.Addr, End: m.Addr + event.Addr(m.Size)})
		}
	}
	return list, nil
}

// accesses runs a configuration and returns those that some code makes.
func accesses(ctx context.Context, c heddle.Config, code []emu.AddrRange, name string) ([]access, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c.Record = &heddle.Record{To: file, Memory: &recorder.MemoryConfig{Code: code}}
	if _, _, err := study.Run(ctx, c); err != nil {
		return nil, err
	}
	t, err := trace.Open(name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var list []access
	for m, err := range memtrace.Read(t, memtrace.Select{}) {
		if err != nil {
			return nil, err
		}
		if m.Kind == event.Load || m.Kind == event.Store {
			list = append(list, access{m.Thread, m.PC, m.Addr, m.Kind == event.Store})
		}
	}
	return list, nil
}

// shared leaves out accesses to addresses that one thread alone accesses in all runs.
func shared(runs [][]access) [][]access {
	first, several := map[event.Addr]event.ThreadID{}, map[event.Addr]bool{}
	for _, run := range runs {
		for _, a := range run {
			if t, known := first[a.addr]; !known {
				first[a.addr] = a.thread
			} else if t != a.thread {
				several[a.addr] = true
			}
		}
	}
	out := make([][]access, len(runs))
	for i, run := range runs {
		for _, a := range run {
			if several[a.addr] {
				out[i] = append(out[i], a)
			}
		}
	}
	return out
}

// pairwiseMean is the mean edit distance of two of some sequences.
func pairwiseMean[T comparable](all [][]T) float64 {
	sum, pairs := 0, 0
	for i := range all {
		for j := range i {
			sum += distance(all[i], all[j])
			pairs++
		}
	}
	return float64(sum) / float64(max(pairs, 1))
}

// distance is how many elements have to be changed, inserted or left out to make one
// sequence of another (R. A. Wagner and M. J. Fischer, The string-to-string correction
// problem, 1974).
func distance[T comparable](a, b []T) int {
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
