package constraints_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext/tracetest"
)

// encodings are the encodings by their names in commands.
var encodings = map[string]constraints.Encoding{"clap": constraints.CLAP{}, "h3": constraints.Cores{}, "heddle": constraints.Pruned{}}

// families are the families by their names in commands.
var families = map[string]constraints.Family{
	"path": constraints.Path, "bug": constraints.Bug, "sync": constraints.Sync, "order": constraints.MemoryOrder, "read-write": constraints.ReadWrite,
}

// The commands are ENCODING MODEL FAMILY, which prints the formulas of the family, one a
// line, and count ENCODING, which prints how many read-write constraints there are.
func TestFormulas(t *testing.T) {
	tracetest.Run(t, "testdata", func(command []string, trace *model.Trace) string {
		if command[0] == "count" {
			system, err := constraints.New(trace, model.TSO, encodings[command[1]], 0)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(system.Clauses(constraints.ReadWrite))
		}
		system, err := constraints.New(trace, tracetest.Models[command[1]], encodings[command[0]], 0)
		if err != nil {
			return err.Error()
		}
		var out strings.Builder
		for _, f := range system.Parts[families[command[2]]] {
			fmt.Fprintln(&out, f)
		}
		return out.String()
	})
}

// Theorem 1: with m writes on each of C cores the ordered choices are (m+1)^C, of 2^(mC)
// without the order of the cores.
func TestTheorem1(t *testing.T) {
	trace, err := tracetext.Parse(`
		thread 1
		write x 1
		write x 2
		write x 3
		thread 2
		write x 4
		write x 5
		write x 6`)
	if err != nil {
		t.Fatal(err)
	}
	c := constraints.CountChoices(trace)
	if c.Free.Cmp(big.NewInt(64)) != 0 || c.Ordered.Cmp(big.NewInt(16)) != 0 || c.Bound.Cmp(big.NewInt(16)) != 0 {
		t.Errorf("%v free, %v ordered, bound %v; want 64, 16, 16", c.Free, c.Ordered, c.Bound)
	}
}

// A formula that is too large is not made.
func TestLimit(t *testing.T) {
	trace, err := tracetext.Parse("thread 1\nwrite x 1\nwrite x 2\nthread 2\na = read x\nb = read x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := constraints.New(trace, model.SC, constraints.CLAP{}, 3); err == nil || !strings.Contains(err.Error(), "more than 3 comparisons") {
		t.Error(err)
	}
}
