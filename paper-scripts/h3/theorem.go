package main

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// planTheorem1 counts choices on traces of machines of 2, 4 and 8 cores.
func planTheorem1(o *study.Options) (*study.Plan, error) {
	l := &layout{
		head: []table.Column{
			{Name: "cores", Key: "cores", Number: true},
			{Name: "writes N", Key: "writes", Number: true},
			{Name: "2^N, log2", Key: "free", Number: true},
			{Name: "counted, log2", Key: "counted", Number: true},
			{Name: "(N/C+1)^C, log2", Key: "bound", Number: true},
		},
		cells: choiceCells,
	}
	p := &study.Plan{Head: l.tableColumns(), Notes: []string{
		"Counted is the product of m+1 over the cores that write, m their writes in the trace; it is at most (N/C+1)^C, which it is if all write as much.",
	}}
	for _, cores := range []int{2, 4, 8} {
		for _, s := range []subject{
			{paper: "bbuf", program: "bounded-buffer", args: fmt.Sprintf("-p %d -n 20", max(cores, 5))},
			{paper: "racey", program: "racey", args: fmt.Sprintf("-p %d -i 100", cores), right: true, sched: sched.Options{Policy: sched.Random, Quantum: 2000}},
		} {
			s.paper, s.cores = fmt.Sprintf("%s, %d cores", s.paper, cores), cores
			p.Rows = append(p.Rows, l.planRow(&s, bounds{Timeout: time.Minute}))
		}
	}
	_, err := o.Only(nil)
	return p, err
}

// choiceCells are the cells of theorem 1.
func choiceCells(_ context.Context, r *reproduction) ([]string, error) {
	c := constraints.CountChoices(r.outcome.Trace.Trace)
	if c.Ordered.Cmp(c.Bound) > 0 {
		return nil, fmt.Errorf("%s: %v choices are more than the theorem's %v", r.paper, c.Ordered, c.Bound)
	}
	return []string{fmt.Sprint(c.Cores), fmt.Sprint(c.Writes), logarithm2(c.Free), logarithm2(c.Ordered), logarithm2(c.Bound)}, nil
}

// logarithm2 is the logarithm of a number above 0.
func logarithm2(n *big.Int) string {
	fraction := new(big.Float)
	exponent := new(big.Float).SetInt(n).MantExp(fraction)
	f, _ := fraction.Float64()
	return fmt.Sprintf("%.1f", float64(exponent)+math.Log2(f))
}
