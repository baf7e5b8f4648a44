package slice_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// writer writes a random program of two threads, which compute with three arguments, partly
// in shared memory, with and without a lock. The first thread continues after the other one
// has ended, and may make another.
type writer struct {
	*rand.Rand
	text  strings.Builder
	depth int
	loops int
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.text, strings.Repeat("  ", w.depth+1)+format+"\n", args...)
}

// value is an expression.
func (w *writer) value() string {
	switch w.IntN(5) {
	case 0, 1:
		return fmt.Sprintf("in[%d]", w.IntN(3))
	case 2:
		return fmt.Sprintf("own[%d]", w.IntN(4))
	case 3:
		return fmt.Sprint(w.IntN(5))
	}
	return fmt.Sprintf("(own[%d] + in[%d])", w.IntN(4), w.IntN(3))
}

// place is a variable that is written: mostly one of the thread's own.
func (w *writer) place() string {
	switch w.IntN(16) {
	case 0:
		return fmt.Sprintf("shared[%d]", w.IntN(6))
	case 1:
		return fmt.Sprintf("own[(%s) & 3]", w.value())
	}
	return fmt.Sprintf("own[%d]", w.IntN(4))
}

func (w *writer) statements(n int) {
	for range n {
		w.statement()
	}
}

func (w *writer) statement() {
	kind := w.IntN(10)
	if w.depth > 2 {
		kind = min(kind, 4)
	}
	switch {
	case kind < 4:
		w.line("%s = %s;", w.place(), w.value())
	case kind < 5:
		w.line("pthread_mutex_lock(&m); total += %s; pthread_mutex_unlock(&m);", w.value())
	case kind < 6:
		w.loops++
		i := fmt.Sprintf("i%d", w.loops)
		w.line("for (int %s = 0; %s < (%s & 3); %s++) {", i, i, w.value(), i)
		w.inner(1 + w.IntN(2))
		w.line("}")
	default:
		w.line("if (%s %s %d) {", w.value(), []string{"<", "==", ">"}[w.IntN(3)], w.IntN(5))
		w.inner(1 + w.IntN(2))
		if w.IntN(2) == 0 {
			w.line("} else {")
			w.inner(1)
		}
		w.line("}")
	}
}

func (w *writer) inner(n int) {
	w.depth++
	w.statements(n)
	w.depth--
}

func program(r *rand.Rand) string {
	w := &writer{Rand: r}
	w.text.WriteString(`#include <pthread.h>
#include <stdlib.h>
static int in[3], shared[6], total;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
`)
	for _, name := range []string{"first", "second"} {
		fmt.Fprintf(&w.text, "static void *%s(void *p) {\n  volatile int own[4] = {0, 1, 2, 3};\n", name)
		w.statements(5 + w.IntN(4))
		w.line("return p;\n}")
	}
	w.text.WriteString(`int main(int argc, char **argv) {
  pthread_t t;
  for (int i = 0; i < 3; i++) in[i] = atoi(argv[i + 1]);
  pthread_create(&t, NULL, first, NULL);
  second(NULL);
  pthread_join(t, NULL);
  volatile int own[4] = {0, 1, 2, 3};
`)
	w.statements(2)
	if w.IntN(3) == 0 {
		w.line("if (%s > 2) { pthread_create(&t, NULL, first, NULL); second(NULL); pthread_join(t, NULL); }", w.value())
	}
	w.text.WriteString("  return 0;\n}\n")
	return w.text.String()
}

// satisfies reports whether arguments satisfy the constraints of a slice.
func (r *recorded) satisfies(t *testing.T, s *slice.Slice, args []int) bool {
	t.Helper()
	e := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
		for i, a := range args {
			if name == fmt.Sprintf("atoi(argv[%d])", i+1) {
				return symbolic.Value{Lo: uint64(uint32(a))}, true
			}
			for k, c := range fmt.Sprintf("%d\x00", a) {
				if name == fmt.Sprintf("argv[%d][%d]", i+1, k) {
					return symbolic.Value{Lo: uint64(c)}, true
				}
			}
		}
		return symbolic.Value{}, false
	})
	for n := range r.trace.Threads {
		for _, c := range s.Constraints(n) {
			v, err := e.Value(c.Expr())
			if err != nil {
				t.Fatal(err)
			}
			if v.Lo == 0 {
				return false
			}
		}
	}
	return true
}

// Random programs: on every argument that satisfies the kept constraints, whichever way the
// dropped branches go, the schedule can be followed, and the result is the same under any
// interleaving: there is no new race.
func TestSlicesAreSound(t *testing.T) {
	programs := testsize.Pick(3, 9, 120)
	checked, dropped, raced, kept, all := 0, 0, 0, uint64(0), uint64(0)
	for n := range programs {
		r := rand.New(rand.NewPCG(7, uint64(n)))
		text := program(r)
		source := filepath.Join(t.TempDir(), "random.c")
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		bin := gcctest.File(t, source, "-fno-inline", "-no-pie")
		args := []int{r.IntN(4), r.IntN(4), r.IntN(4)}
		c := config(t, append([]string{bin}, texts(args)...)...)
		c.Seed = uint64(n)
		rec := record(t, c, arguments)
		if rec.races() {
			raced++
			continue // its points count instructions, which depend on the arguments
		}
		o := slice.DefaultOptions()
		s := slice.Make(rec.input, o)
		o.Mode = slice.Upper
		whole := slice.Make(rec.input, o)
		kept, all = kept+s.Stats.KeptBranches, all+s.Stats.Branches
		for range 24 {
			other := []int{r.IntN(4), r.IntN(4), r.IntN(4)}
			if !rec.satisfies(t, s, other) {
				continue
			}
			checked++
			if !rec.satisfies(t, whole, other) {
				dropped++
			}
			rec.enforce(t, text, append([]string{bin}, texts(other)...))
		}
	}
	t.Logf("%d of %d programs had races; %d of %d branches kept; %d other arguments followed the schedule, %d of them on other paths", raced, programs, kept, all, checked, dropped)
	if dropped < 3 {
		t.Error("nothing was shown")
	}
}

func texts(args []int) []string {
	var list []string
	for _, a := range args {
		list = append(list, fmt.Sprint(a))
	}
	return list
}

// races reports whether the schedule has points in the program.
func (r *recorded) races() bool {
	for i := range r.made.Schedule.Constraints {
		c := &r.made.Schedule.Constraints[i]
		if r.input.Image.Contains(uint64(c.First.PC)) || r.input.Image.Contains(uint64(c.Second.PC)) {
			return true
		}
	}
	return false
}

// enforce runs the program on other arguments under the schedule, twice.
func (r *recorded) enforce(t *testing.T, text string, args []string) {
	t.Helper()
	first := ""
	for seed := range uint64(2) {
		c := r.config
		c.Args = args
		var out bytes.Buffer
		c.Seed, c.Cores, c.Stdin, c.Stdout, c.Stderr = 90+seed, 2+int(seed), bytes.NewReader(nil), &out, &out
		c.Sched = sched.Options{DelayRate: 0.4 * float64(seed)}
		peregrine.BindNow(&c)
		c.Enforce = &machine.Enforce{Schedule: r.made.Schedule, Seed: r.config.Seed, Cores: r.config.Cores}
		res, err := machine.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !res.Schedule.Followed {
			t.Fatalf("recorded on %v, on %v: the schedule was left: %+v\n%s", r.config.Args[1:], args[1:], res.Schedule, text)
		}
		if first == "" {
			first = res.StateDigest
		}
		if first != res.StateDigest {
			t.Fatalf("recorded on %v, on %v: two results\n%s", r.config.Args[1:], args[1:], text)
		}
	}
}
