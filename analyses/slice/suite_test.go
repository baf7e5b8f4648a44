package slice_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/guest/programs"
)

func TestSuite(t *testing.T) {
	for _, line := range strings.Split(os.Getenv("SUITE"), ";") {
		f := strings.Fields(line)
		p, err := programs.Find(f[0])
		if err != nil {
			t.Fatal(err)
		}
		bin, err := p.Build(programs.Variant{Form: programs.Fixed, Optimize: 2})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r := record(t, config(t, append([]string{bin}, f[1:]...)...), arguments)
		fmt.Printf("%s: recorded in %v, operations %d constraints %d threads %d\n", line, time.Since(begin), len(r.made.Schedule.Operations), len(r.made.Schedule.Constraints), len(r.trace.Threads))
		for m, name := range slice.Modes() {
			begin := time.Now()
			o := slice.DefaultOptions()
			o.Mode = slice.Mode(m)
			s := slice.Make(r.input, o)
			fmt.Printf("  %-10s %v %+v\n", name, time.Since(begin), s.Stats)
			if os.Getenv("SHOW") == name {
				seen := map[[2]int]int{}
				for i := range r.trace.Threads {
					for _, k := range s.Constraints(i) {
						st := r.trace.Threads[i].Cursor(k.Step)
						st.Next()
						if key := [2]int{st.Block.Number, k.Stmt}; seen[key] < 1 && len(seen) < 60 {
							seen[key]++
							x := k.Expr().String()
							fmt.Printf("     %d %x %s %s\n", i, st.Block.Addr, k.Kind, x[:min(len(x), 150)])
						}
					}
				}
			}
		}
	}
}
