package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/sched"
)

// withPaperColumns are columns of the paper's numbers, each with ours to the right.
func withPaperColumns(columns ...table.Column) (head []table.Column) {
	for _, c := range columns {
		head = append(head, table.Column{Name: "paper: " + c.Name, Key: "paper_" + c.Key, Number: true}, c)
	}
	return head
}

// pairCells are the cells of columns of beside.
func pairCells(paper, ours []string) (cells []string) {
	for i := range ours {
		cells = append(cells, paper[i], ours[i])
	}
	return cells
}

// table2 is the size of traces.
var table2 = layout{
	head: append(withPaperColumns(
		table.Column{Name: "threads", Key: "threads", Number: true},
		table.Column{Name: "instructions", Key: "instructions", Number: true},
		table.Column{Name: "seconds", Key: "seconds", Number: true},
	),
		table.Column{Name: "shared pieces", Key: "shared", Number: true},
		table.Column{Name: "events", Key: "events", Number: true},
		table.Column{Name: "bits per instruction", Key: "bits", Number: true}),
	notes:    []string{"Seconds are the processor time of making the symbolic trace; bits are those of the branch trace."},
	includes: func(s *subject) bool { return s.table2 != nil },
	cells: func(_ context.Context, r *reproduction) ([]string, error) {
		size, err := r.recording.Size()
		if err != nil {
			return nil, err
		}
		ours := []string{fmt.Sprint(size.Threads), fmt.Sprint(size.Instructions), fmt.Sprintf("%.3f", r.outcome.Traced.Seconds())}
		return append(pairCells(r.subject.table2, ours), fmt.Sprint(len(r.outcome.Trace.Shared)), fmt.Sprint(len(r.outcome.Trace.Trace.Events)),
			fmt.Sprintf("%.2f", float64(8*size.Bytes)/float64(size.Instructions))), nil
	},
}

// table4 is the size and the time of each encoding.
var table4 = layout{
	head: append(withPaperColumns(
		table.Column{Name: "unknowns", Key: "unknowns", Number: true},
		table.Column{Name: "CLAP", Key: "clap", Number: true},
		table.Column{Name: "H3", Key: "h3", Number: true},
		table.Column{Name: "fewer, %", Key: "fewer", Number: true},
		table.Column{Name: "CLAP, s", Key: "clap_seconds", Number: true},
		table.Column{Name: "H3, s", Key: "h3_seconds", Number: true},
	),
		table.Column{Name: "heddle", Key: "heddle", Number: true},
		table.Column{Name: "heddle, s", Key: "heddle_seconds", Number: true}),
	notes: []string{
		"Constraints of each encoding, and seconds of processor time of solving them; -: not solved in time, or the trace has more events",
		"than --events, or, of heddle's, more than two million. Of more than two million Z3 gets those of CLAP and H3 that it needs.",
	},
	includes: func(*subject) bool { return true },
	cells:    solverCells,
}

// maxCLAPConstraints is of how many constraints of CLAP's those of heddle are made.
const maxCLAPConstraints = 2_000_000

func solverCells(ctx context.Context, r *reproduction) ([]string, error) {
	t := r.outcome.Trace.Trace
	counts, times := map[string]int{"clap": constraints.CountCLAP(t), "h3": constraints.CountCores(t)}, map[string]string{}
	for _, e := range []string{"clap", "h3"} {
		times[e] = "-"
		if r.bounds.Events > 0 && len(t.Events) > r.bounds.Events {
			continue
		}
		o := r.options
		o.Encoding, o.Timeout = e, r.bounds.Timeout
		if found, err := r.recording.Reproduce(ctx, o); err == nil && found.Answer == smt.Satisfiable {
			times[e] = fmt.Sprintf("%.1f", found.Solved.Seconds())
		}
	}
	heddles := "-"
	if counts["clap"] <= maxCLAPConstraints {
		if _, n, err := r.outcome.Clauses("heddle"); err == nil { // otherwise there are too many
			heddles = fmt.Sprint(n)
		}
	}
	ours := []string{
		fmt.Sprint(len(t.Events)), fmt.Sprint(counts["clap"]), fmt.Sprint(counts["h3"]),
		fmt.Sprintf("%.1f", 100*(1-float64(counts["h3"])/float64(counts["clap"]))), times["clap"], times["h3"],
	}
	return append(pairCells(r.subject.table4, ours), heddles, fmt.Sprintf("%.2f", r.outcome.Solved.Seconds())), ctx.Err()
}

// recordFailure records the first seed that fails, and returns the right output if another output
// is the failure.
func recordFailure(ctx context.Context, s *subject, file string) ([]byte, error) {
	p, err := suite.Find(s.program)
	if err != nil {
		return nil, err
	}
	bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2, Static: true, Debug: true})
	if err != nil {
		return nil, err
	}
	c := machine.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, strings.Fields(s.args)...), "/"
	if s.cores > 0 {
		c.Cores = s.cores
	}
	var right []byte
	if s.right {
		serial := c
		var stdout bytes.Buffer
		serial.Cores, serial.Sched, serial.Stdout = 1, sched.Options{Policy: sched.RR}, &stdout
		if _, err := machine.Run(ctx, serial); err != nil {
			return nil, err
		}
		right = stdout.Bytes()
	}
	c.Sched, c.MaxInstructions = s.sched, s.instructions
	for c.Seed = 1; c.Seed <= 100; c.Seed++ {
		failed, err := recordSeed(ctx, c, file, right)
		if err != nil || failed {
			return right, err
		}
	}
	return nil, study.Unmeasurable{Reason: "no seed up to 100 fails"}
}

func recordSeed(ctx context.Context, c machine.Config, file string, right []byte) (bool, error) {
	f, err := os.Create(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var stdout bytes.Buffer
	c.Stdout, c.Record = &stdout, &machine.Record{To: f, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}
	result, err := machine.Run(ctx, c)
	if err != nil {
		return false, err
	}
	_, failed := result.Failure(nil)
	return failed || right != nil && !bytes.Equal(right, stdout.Bytes()), nil
}
