package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// timed are the programs of figures 4 and 5 that the suite has, with what the text
// of the paper says of them at two and at eight threads: how much more time and
// energy Frost takes, in percent. Apache and MySQL, which wait for the network and
// the disk, have no counterpart here.
var timed = []struct {
	paper, name  string
	time, energy map[int]string
}{
	{"pbzip2", "compressor", map[int]string{2: "8", 8: "200"}, map[int]string{2: "26", 8: "122"}},
	{"pfscan", "scanner", map[int]string{2: "12", 8: "200"}, map[int]string{2: "34", 8: "208"}},
}

// machineCores is how many the machine of figures 4 and 5 has, scaleCores that of
// figure 6.
const machineCores, scaleCores = 8, 32

// parts is into how many epochs a run is cut, as long as its threads come to their
// ends: the paper's runs of minutes have more, ours of milliseconds would be one.
const parts = 20

// timing is the virtual time of a run on a machine of some cores, in milliseconds,
// and for how long cores were busy, without Frost and with it.
type timing struct{ plain, busy, frost, work float64 }

// timings measures a program with some threads on some cores.
func timings(ctx context.Context, paper, name string, threads, cores int) (*timing, error) {
	size, clean, err := scanned(name)
	defer clean()
	if err != nil {
		return nil, err
	}
	subject, err := study.New(paper, name, programs.Fixed, size, threads)
	if err != nil {
		return nil, err
	}
	c := subject.Config(1)
	c.Cores = cores
	t := &timing{}
	if t.plain, err = plainly(ctx, c); err != nil {
		return nil, err
	}
	o := frost.DefaultOptions()
	o.Epoch, o.Growth = t.plain/parts, 0
	r, _, err := trial(ctx, c, o)
	if err != nil {
		return nil, err
	}
	for _, e := range r.Epochs {
		t.busy += e.Replicas[0].Work
	}
	t.frost, t.work = r.Crowded, r.Work
	return t, nil
}

// scanned are a program's arguments: the scanner gets a folder of files to scan, as
// one thread makes them otherwise, which takes longer than scanning does.
func scanned(name string) (size study.Size, clean func(), err error) {
	if name != "scanner" {
		return study.Test, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "heddle-scan-")
	clean = func() { _ = os.RemoveAll(dir) } // nobody needs it any more
	text := bytes.Repeat([]byte("one heddle lifts one thread of the warp and no other\n"), 150)
	for i := 0; err == nil && i < 64; i++ {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.log", i)), text, 0o600)
	}
	return study.Size("-p {threads} -d " + dir), clean, err
}

// plainly is the virtual time of a run without Frost, in milliseconds.
func plainly(ctx context.Context, c heddle.Config) (ms float64, err error) {
	_, r, err := study.Run(ctx, c)
	if err != nil {
		return 0, err
	}
	return float64(r.Cycles) / float64(c.Costs.MHz) / 1000, nil
}

func number(x float64) string { return fmt.Sprintf("%.1f", x) }

// reported is what the paper's text says, or "-".
func reported(m map[int]string, threads int) string {
	if s := m[threads]; s != "" {
		return s
	}
	return "-"
}

// eachTimed measures the programs of figures 4 and 5 with the paper's numbers of
// threads.
func eachTimed(ctx context.Context, s *settings, row func(paper, name string, threads int, t *timing) []string, t *table.Table) (*table.Table, error) {
	for _, p := range timed {
		if !s.wants(p.name) {
			continue
		}
		for _, threads := range []int{2, 3, 4, 8} {
			fmt.Fprintln(s.progress, p.name, threads)
			m, err := timings(ctx, p.paper, p.name, threads, machineCores)
			if err != nil {
				return nil, err
			}
			label := fmt.Sprintf("%s %d", p.paper, threads)
			t.Rows = append(t.Rows, append([]string{label}, row(p.paper, p.name, threads, m)...))
		}
	}
	return t, nil
}

func figure4(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "the paper's, threads", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "without Frost, ms", Key: "plain", Number: true},
		{Name: "with Frost, ms", Key: "frost", Number: true},
		{Name: "more, %", Key: "overhead", Number: true},
		{Name: "paper, %", Key: "paper_overhead", Number: true},
	}, Notes: []string{
		"On 8 cores. With Frost: when the last epoch is committed if replicas run beside each other, and not less than all that they",
		"do on 8 cores that never stand still. An epoch ends when all threads have come to an operation or system call: the last one,",
		"which its epoch-parallel replicas execute on one core, is a large part of so short a run if threads come to few.",
	}}
	return eachTimed(ctx, s, func(paper, name string, threads int, m *timing) []string {
		return []string{name, fmt.Sprintf("%.3f", m.plain), fmt.Sprintf("%.3f", m.frost), number(100 * (m.frost/m.plain - 1)), paperOf(paper, threads, false)}
	}, t)
}

// paperOf is the paper's number for a program.
func paperOf(paper string, threads int, energy bool) string {
	for _, p := range timed {
		if p.paper == paper && energy {
			return reported(p.energy, threads)
		} else if p.paper == paper {
			return reported(p.time, threads)
		}
	}
	return "-"
}

// idle is the part of its power at full load that a machine takes when it is idle.
// It is chosen so that a machine with two of eight cores busy takes 29 % more energy
// with three times the work in 1.08 times the time, near the paper's 26 % of pbzip2.
const idle = 0.7

// energy is what a machine takes that is on for some time with cores busy for some:
// the idle part for as long as it is on, and the rest in proportion to the cores
// that are busy. A unit is a millisecond of full load.
func energy(on, busy float64) float64 { return idle*on + (1-idle)*busy/machineCores }

func figure5(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "the paper's, threads", Key: "paper"},
		{Name: "ours", Key: "program"},
		{Name: "without Frost", Key: "plain", Number: true},
		{Name: "with Frost", Key: "frost", Number: true},
		{Name: "more, %", Key: "overhead", Number: true},
		{Name: "paper, %", Key: "paper_overhead", Number: true},
	}, Notes: []string{
		"A model: the machine takes 70 % of its full power when it is idle, and the rest in proportion to the cores that are busy.",
		"The unit is what it takes in a millisecond of full load. The paper measures a machine of 2009 with a power meter.",
	}}
	return eachTimed(ctx, s, func(paper, name string, threads int, m *timing) []string {
		plain, under := energy(m.plain, m.busy), energy(m.frost, m.work)
		return []string{name, fmt.Sprintf("%.3f", plain), fmt.Sprintf("%.3f", under), number(100 * (under/plain - 1)), paperOf(paper, threads, true)}
	}, t)
}

func figure6(ctx context.Context, s *settings) (*table.Table, error) {
	t := &table.Table{Head: []table.Column{
		{Name: "threads", Key: "threads"},
		{Name: "without Frost", Key: "plain", Number: true},
		{Name: "with Frost", Key: "frost", Number: true},
		{Name: "more time, %", Key: "overhead", Number: true},
	}, Notes: []string{
		"Throughput of the scanner on 32 cores, in times of that of one thread without Frost. The paper's figure is a plot; its text says",
		"that pfscan scales to 10 cores without Frost, where memory is what holds it up, and to 6 with Frost, at less than 4 % more time.",
		"The timing model has no bandwidth of memory.",
	}}
	one := 0.0
	for _, threads := range []int{1, 2, 4, 6, 8, 10, 16, 32} {
		fmt.Fprintln(s.progress, "scanner", threads)
		m, err := timings(ctx, "pfscan", "scanner", threads, scaleCores)
		if err != nil {
			return nil, err
		}
		if one == 0 {
			one = m.plain
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(threads), fmt.Sprintf("%.2f", one/m.plain), fmt.Sprintf("%.2f", one/m.frost), number(100 * (m.frost/m.plain - 1)),
		})
	}
	return t, nil
}
