package litmus

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Outcomes are the outcomes of a test, each with a count, whose
// unit its maker defines.
type Outcomes struct {
	observer *Observer
	list     []Outcome
	at       map[string]int
}

// Outcome is a state with a number.
type Outcome struct {
	State State
	Count uint64
}

// NewOutcomes makes an empty set.
func NewOutcomes(o *Observer) *Outcomes { return &Outcomes{observer: o, at: map[string]int{}} }

// Add counts a state n times, unless the test's filter leaves it out. Counts
// stop at the largest number.
func (o *Outcomes) Add(s State, n uint64) {
	if !o.observer.Counts(s) {
		return
	}
	key := s.Key()
	i, ok := o.at[key]
	if !ok {
		i = len(o.list)
		o.at[key] = i
		o.list = append(o.list, Outcome{State: s})
	}
	o.list[i].Count = saturated(o.list[i].Count, n)
}

func saturated(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Len is the number of outcomes.
func (o *Outcomes) Len() int { return len(o.list) }

// Has reports whether s is among the outcomes.
func (o *Outcomes) Has(s State) bool {
	_, ok := o.at[s.Key()]
	return ok
}

// Sorted lists the outcomes by their values.
func (o *Outcomes) Sorted() []Outcome {
	list := slices.Clone(o.list)
	slices.SortFunc(list, func(a, b Outcome) int { return slices.Compare(a.State, b.State) })
	return list
}

// Minus lists the states of o that other has not.
func (o *Outcomes) Minus(other *Outcomes) []State {
	var only []State
	for _, out := range o.Sorted() {
		if !other.Has(out.State) {
			only = append(only, out.State)
		}
	}
	return only
}

// Equal reports whether two sets have the same states, whatever the counts.
func (o *Outcomes) Equal(other *Outcomes) bool {
	return len(o.list) == len(other.list) && len(o.Minus(other)) == 0
}

// Observer is the observer that picked the states.
func (o *Outcomes) Observer() *Observer { return o.observer }

// Verdict sums a set of outcomes up.
type Verdict struct {
	// Satisfied and Violated count the outcomes in which the condition, without
	// its quantifier, holds and does not.
	Satisfied, Violated uint64
	// OK reports that the claim of the test is true of the set.
	OK bool
	// Observation is Never, Sometimes or Always.
	Observation string
}

// Verdict judges the test's condition.
func (o *Outcomes) Verdict() Verdict {
	var v Verdict
	for _, out := range o.list {
		if o.observer.Satisfies(out.State) {
			v.Satisfied = saturated(v.Satisfied, out.Count)
		} else {
			v.Violated = saturated(v.Violated, out.Count)
		}
	}
	switch {
	case v.Satisfied == 0:
		v.Observation = "Never"
	case v.Violated == 0:
		v.Observation = "Always"
	default:
		v.Observation = "Sometimes"
	}
	switch o.observer.test.Quant {
	case Exists:
		v.OK = v.Satisfied > 0
	case NotExists:
		v.OK = v.Satisfied == 0
	case ForAll:
		v.OK = v.Violated == 0
	}
	return v
}

// Write prints the outcomes in the layout of herd7, with the counts of litmus7
// in front of the states; a star marks the ones that satisfy the condition.
func (o *Outcomes) Write(w io.Writer) error {
	t, v := o.observer.test, o.Verdict()
	var b strings.Builder
	fmt.Fprintf(&b, "Test %s %s\n", t.Name, [...]string{"Allowed", "Forbidden", "Required"}[t.Quant])
	fmt.Fprintf(&b, "States %d\n", len(o.list))
	for _, out := range o.Sorted() {
		mark := ':'
		if o.observer.Satisfies(out.State) {
			mark = '*'
		}
		fmt.Fprintf(&b, "%-6d%c>%s\n", out.Count, mark, o.observer.Format(out.State))
	}
	b.WriteString(map[bool]string{true: "Ok\n", false: "No\n"}[v.OK])
	positive, negative := v.Satisfied, v.Violated
	if t.Quant == NotExists {
		positive, negative = negative, positive
	}
	fmt.Fprintf(&b, "Witnesses\nPositive: %d Negative: %d\n", positive, negative)
	if t.Filter != nil {
		fmt.Fprintf(&b, "Filter (%s)\n", t.Filter)
	}
	fmt.Fprintf(&b, "Condition %s\n", t.Condition())
	fmt.Fprintf(&b, "Observation %s %s %d %d\n\n", t.Name, v.Observation, v.Satisfied, v.Violated)
	_, err := io.WriteString(w, b.String())
	return err
}
