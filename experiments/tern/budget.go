package tern

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Budget bounds the computation of preconditions. Where it ends, inputs are pinned: the schedule is then for runs
// with the recorded content of these inputs. All but Time are counted in units that do not depend on the host, so the
// same run and the same budget give the same preconditions. 0 means no bound.
type Budget struct {
	// Run is the number of instructions of a run of which a schedule is made; a longer one has none.
	Run uint64
	// Instructions is the number of instructions of a run that is followed on expressions; for a longer run all
	// inputs are pinned.
	Instructions uint64
	// Terms is the number of terms that are made before an input is pinned; each is 16 bytes, and its constraints
	// are as many at most. In all, twice as many are made.
	Terms int
	// Slicing is the number of steps of slicing and of the analyses that it needs, such as visits of blocks and
	// comparisons of sets of addresses; where it ends all inputs are pinned.
	Slicing uint64
	// Operations is the number of operations in the expressions of the constraints that the schedule depends on.
	Operations int
	// Questions is the number of questions to Z3. After the last one, redundant terms are kept.
	Questions int
	// Time is how long the host may take. Where it ends depends on the host's speed.
	Time time.Duration
}

// DefaultBudget is that of heddle's commands.
func DefaultBudget() Budget {
	return Budget{Run: 500_000_000, Instructions: 100_000_000, Terms: 24_000_000, Slicing: 200_000_000, Operations: 1_000_000, Questions: 20_000}
}

// errTimeUp ends a computation after Budget.Time.
var errTimeUp = errs.Define("preconditions-time-up",
	"the time for the computation of preconditions is up",
	"The computation took longer than --time allows; the preconditions are then that all input is as recorded.",
	"Give more time with --time, or a budget that does not depend on the host (--budget-instructions, --budget-terms).")

// stages reports the progress of the computation of preconditions.
type stages struct {
	report func(string) // or nil
	ctx    context.Context
	limit  time.Duration
	end    time.Time
}

func newStages(ctx context.Context, o *Options) *stages {
	s := &stages{report: o.Progress, ctx: ctx, limit: o.Budget.Time}
	if s.limit > 0 {
		s.end = time.Now().Add(s.limit)
	}
	return s
}

// say reports what is done now.
func (s *stages) say(format string, args ...any) {
	if s.report != nil {
		s.report(fmt.Sprintf(format, args...))
	}
}

// isOver returns errTimeUp after the time limit, or the reason why the context ended.
func (s *stages) isOver() error {
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case s.limit > 0 && time.Now().After(s.end):
		return errTimeUp.New()
	}
	return nil
}

// followed is called during the concolic execution.
func (s *stages) followed(instructions uint64, terms int) error {
	s.say("following the run on expressions: %d instructions, %d terms", instructions, terms)
	return s.isOver()
}

// errSliceTooLong ends slicing after Budget.Slicing.
var errSliceTooLong = errs.Define("preconditions-slicing-too-long",
	"this run is not sliced: it takes too many steps",
	"The program has too much code, or too many accesses that may be the same memory, for the budget of the computation.",
	"Raise the budget (heddle run --budget-slicing), or record a shorter run.")

// errRunTooLong is why no schedule is made after Budget.Run.
var errRunTooLong = errs.Define("memoized-run-too-long",
	"no schedule of {program} is made: its run has {instructions} instructions",
	"Ordering the memory accesses of the run would take longer than the budget of the computation allows.",
	"Raise the budget (heddle run --budget-run), or memoize a shorter run; heddle schedule record and compute have no budget.")

// pinTerms returns the terms that inputs have their recorded contents.
func (m *Schedule) pinTerms(p *symbolic.Pool, c *machine.Config, names []string) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for _, name := range names {
		if text, ok := preconditions.TextOf(name, c.Args, c.Env); ok {
			for k, b := range []byte(text + "\x00") {
				terms = append(terms, p.Eq(p.Symbol(fmt.Sprintf("%s[%d]", name, k), 8), p.Word(uint64(b), 8)))
			}
			continue
		}
		terms = append(terms, preconditions.ContentTerm(p, name, m.contents[name]))
	}
	return terms
}

// pinAll makes preconditions that all inputs have their recorded contents, because of an error.
func (m *Schedule) pinAll(c *machine.Config, o *Options, cause error) error {
	m.Cause, m.TimeUp = cause, errors.Is(cause, errTimeUp)
	p := symbolic.NewPool()
	set := &preconditions.Set{}
	m.Pinned = nil
	for i := range c.Args[1:] {
		m.Pinned = append(m.Pinned, fmt.Sprintf("argv[%d]", i+1))
	}
	for _, v := range o.Variables {
		m.Pinned = append(m.Pinned, fmt.Sprintf("env[%s]", v))
	}
	for _, v := range m.File.Varying {
		if v != "stdin" {
			v = "file(" + v + ")"
		}
		m.Pinned = append(m.Pinned, v)
	}
	set.Terms = slices.Concat(sizeTerms(p, c), m.pinTerms(p, c, m.Pinned), m.folderTerms(p, c))
	return m.keepTerms(set, o)
}

// mappedTerms returns terms that fix the sizes of files that the run mapped, and pins those whose bytes are not followed.
func (m *Schedule) mappedTerms(p *symbolic.Pool, files []concolicrun.MappedFile) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for _, f := range files {
		name := "file(" + f.Name + ")"
		if f.Name == "stdin" {
			name = f.Name
		}
		if f.Whole && !slices.Contains(m.Pinned, name) {
			m.Pinned = append(m.Pinned, name)
		}
		terms = append(terms, p.Eq(p.Symbol("size("+f.Name+")", 64), p.Word(f.Size, 64)))
	}
	return terms
}

// sizeTerms returns terms that fix the sizes of the files that arguments name: a run may ask for the size of a file
// that it does not read.
func sizeTerms(p *symbolic.Pool, c *machine.Config) []*symbolic.Expr {
	var terms []*symbolic.Expr
	for i, a := range c.Args {
		if info, err := os.Stat(hostPath(c, a)); i > 0 && err == nil && info.Mode().IsRegular() {
			terms = append(terms, p.Eq(p.Symbol(fmt.Sprintf("size(argv[%d])", i), 64), p.Word(uint64(info.Size()), 64)))
		}
	}
	return terms
}

// endsEarly reports whether an error ended the concolic execution because the budget did.
func endsEarly(err error) bool {
	return errors.Is(err, concolicrun.ErrTooLong) || errors.Is(err, errSliceTooLong) || errors.Is(err, errTimeUp)
}

// BudgetText says why and which inputs are pinned; empty: none is.
func (m *Schedule) BudgetText() string {
	text := ""
	if len(m.Pinned) > 0 {
		text = "the budget of this computation ended"
		if m.Cause != nil {
			text = m.Cause.Error()
		}
		text += ": the schedule is for runs with the recorded content of " + strings.Join(m.Pinned, ", ")
	}
	switch {
	case m.TimeUp && text != "":
		text += "; the time that ended it depends on the host's speed"
	case m.TimeUp:
		text = "the time for this computation ended: some preconditions are redundant, which ones depends on the host's speed"
	}
	return text
}
