package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// table1Settings is the configuration of table 1.
type table1Settings struct {
	Cores int    `mapstructure:"cores"`
	Seed  uint64 `mapstructure:"seed"`
	// Programs are the rows.
	Programs []table1Program `mapstructure:"programs"`
}

// table1Program is a program one of whose runs is memoized.
type table1Program struct {
	Name    string `mapstructure:"name"`
	Program string `mapstructure:"program"`
	// Recorded is the memoized input, and Others are tried on its schedule.
	Recorded targetInput   `mapstructure:"recorded"`
	Others   []targetInput `mapstructure:"others"`
	// Reported is the paper's constraint.
	Reported string `mapstructure:"reported"`
	// Sound has it memoized a second time, with data and races considered, which takes Z3
	// minutes for some.
	Sound bool   `mapstructure:"sound"`
	Why   string `mapstructure:"why"`
}

func planTable1(o *study.Options) (*study.Plan, error) {
	s := &table1Settings{Cores: 4, Seed: 1}
	if _, err := o.Load(s, "cores", "seed"); err != nil {
		return nil, err
	}
	var names []string
	for _, x := range s.Programs {
		names = append(names, x.Name)
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	p := &study.Plan{
		Head: []table.Column{
			{Name: "program", Key: "program"},
			{Name: "paper: constraints", Key: "paper"},
			{Name: "ours", Key: "constraints"},
			{Name: "terms", Key: "terms", Number: true},
			{Name: "should serve: does", Key: "served"},
			{Name: "should not: does not", Key: "refused"},
			{Name: "by data, too: terms", Key: "sound_terms", Number: true},
			{Name: "should serve: does", Key: "sound_served"},
			whyColumn,
		},
		Notes: []string{
			"One run is memoized; other inputs are tried on its schedule: which the preconditions admit, and of those which follow it with the output that they have natively. \"Should serve\" is what the paper's constraint says of an input.",
			"Preconditions are those of branches with an operation before their post-dominators (TERN section 7.4) and, \"by data, too\", those that a slice keeps which minds data and races (PEREGRINE section 4).",
		},
	}
	for _, x := range s.Programs {
		if !wanted(x.Name) {
			continue
		}
		p.Rows = append(p.Rows, study.Row{
			Name: x.Name, Key: []any{x, s.Cores, s.Seed},
			Measure: study.InFolder(x.Name, len(p.Head), func(ctx context.Context, dir string) ([]string, error) {
				return s.measureRow(ctx, o, x, dir)
			}),
		})
	}
	return p, nil
}

// measureRow makes a row: the program memoized with TERN's pruning and, if Sound is set,
// with data.
func (s *table1Settings) measureRow(ctx context.Context, o *study.Options, x table1Program, dir string) ([]string, error) {
	cells := []string{x.Name, x.Reported}
	t := &reuseTarget{name: x.Program, dir: dir}
	modes := []slice.Mode{slice.TERN}
	if x.Sound {
		modes = append(modes, slice.Simplified)
	}
	for _, mode := range modes {
		o.Say("  %s: %s", x.Name, slice.Modes()[mode])
		c, err := t.runConfig(&x.Recorded, s.Cores, s.Seed)
		if err != nil {
			return nil, err
		}
		m, err := memoizeRun(ctx, c, dir, mode)
		if err != nil {
			return nil, err
		}
		served, refused, err := t.tryInputs(ctx, o, m, x.Others, mode, s.Cores, s.Seed)
		if err != nil {
			return nil, err
		}
		if mode == slice.TERN {
			cells = append(cells, readablePreconditions(m), fmt.Sprint(m.Terms), served, refused)
		} else {
			cells = append(cells, fmt.Sprint(m.Terms), served)
		}
	}
	if !x.Sound {
		cells = append(cells, "-", "-")
	}
	return append(cells, x.Why), nil
}

// tryInputs counts the inputs that a schedule serves among the inputs that it should serve, and
// the inputs that it does not serve among the others.
func (t *reuseTarget) tryInputs(ctx context.Context, o *study.Options, m *tern.Schedule, others []targetInput, mode slice.Mode, cores int, seed uint64) (served, refused string, err error) {
	var does, should, not, rest int
	for i := range others {
		c, err := t.runConfig(&others[i], cores, seed+uint64(i)+1)
		if err != nil {
			return "", "", err
		}
		why := tern.Admits(&c, m.File)
		if why == "" {
			if why, err = runUnderSchedule(ctx, c, m.File, mode == slice.TERN); err != nil {
				return "", "", err
			}
		}
		ok := why == ""
		o.Say("    %q: %.100s", c.Args[1:], cmp.Or(why, "served"))
		switch {
		case others[i].Reused && ok:
			does, should = does+1, should+1
		case others[i].Reused:
			should++
		case ok:
			rest++
		default:
			not, rest = not+1, rest+1
		}
	}
	return fmt.Sprintf("%d of %d", does, should), fmt.Sprintf("%d of %d", not, rest), nil
}

// maxCellRunes is the number of characters of preconditions in a cell.
const maxCellRunes = 240

// readablePreconditions returns a schedule's preconditions in readable form, or their
// beginning.
func readablePreconditions(m *tern.Schedule) string {
	set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
	if err != nil {
		return err.Error()
	}
	text := []rune(strings.Join(set.Texts(), " ∧ "))
	if len(text) <= maxCellRunes {
		return string(text)
	}
	return string(text[:maxCellRunes]) + " ..."
}
