package litmus

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/internal/errs"
)

// Expectation is the entry of one test in a file in herd's output layout.
type Expectation struct {
	Name        string
	States      []string // sorted, each with its parts sorted
	Observation string   // Never, Sometimes or Always
	Line        int
}

var errExpectation = errs.Define("litmus-expectation",
	"{file}:{line}: found {found}, expected {expected}",
	"The file for --expect is not of the layout in which herd7 and heddle litmus print results.",
	"Give a file that one of them printed.")

var stateCount = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*[0-9]+\s*[:*]>`)
})

// ParseExpectations reads results as herd7, litmus7 and heddle print them.
// Lines that say nothing of states or observations are passed over.
func ParseExpectations(file, text string) ([]Expectation, error) {
	var all []Expectation
	states := 0
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		wrong := func(found, expected string) error {
			return errExpectation.New(file, i+1, quoteTrimmed(found), expected)
		}
		switch {
		case states > 0:
			if !strings.Contains(line, "=") && !strings.HasSuffix(strings.TrimSpace(line), ">") {
				return nil, wrong(line, "a state")
			}
			last := &all[len(all)-1]
			last.States = append(last.States, normalState(line))
			states--
		case len(fields) >= 2 && fields[0] == "Test":
			all = append(all, Expectation{Name: fields[1], Line: i + 1})
		case len(all) == 0:
		case len(fields) >= 2 && (fields[0] == "States" || fields[0] == "Histogram"):
			if _, err := fmt.Sscanf(strings.Trim(fields[1], "("), "%d", &states); err != nil || states < 0 {
				return nil, wrong(line, "the number of states")
			}
		case len(fields) >= 3 && fields[0] == "Observation":
			all[len(all)-1].Observation = fields[2]
		}
	}
	if states > 0 {
		return nil, errExpectation.New(file, strings.Count(text, "\n")+1, "the end", "a state")
	}
	if len(all) == 0 {
		return nil, errExpectation.New(file, 1, "no result", "lines that begin Test, States and Observation")
	}
	for i := range all {
		slices.Sort(all[i].States)
	}
	return all, nil
}

// normalState is a line of states without count, brackets around locations and
// the order of its parts.
func normalState(line string) string {
	line = stateCount().ReplaceAllString(line, "")
	var parts []string
	for _, part := range strings.Split(line, ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			continue
		}
		if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
			name = name[1 : len(name)-1]
		}
		parts = append(parts, strings.ToLower(name)+"="+value)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// Differences says in sentences how the outcomes differ from the expected ones;
// it is empty when they agree.
func (o *Outcomes) Differences(want Expectation) []string {
	var got, diffs []string
	for _, out := range o.list {
		got = append(got, normalState(o.observer.Format(out.State)))
	}
	for _, s := range want.States {
		if !slices.Contains(got, s) {
			diffs = append(diffs, "missing state: "+s)
		}
	}
	slices.Sort(got)
	for _, s := range got {
		if !slices.Contains(want.States, s) {
			diffs = append(diffs, "state that was not expected: "+s)
		}
	}
	if v := o.Verdict(); want.Observation != "" && v.Observation != want.Observation {
		diffs = append(diffs, fmt.Sprintf("observation %s, expected %s", v.Observation, want.Observation))
	}
	return diffs
}
