package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/sched"
)

// Scheduling lists values of scheduling options, by their names in machine.sched.
type Scheduling map[string][]string

// schedulingOf are the values that the grid has for a program: the program's own take the place of the grid's.
func (x *Experiment) schedulingOf(p Program) Scheduling {
	all := Scheduling{}
	maps.Copy(all, x.Grid.Sched)
	maps.Copy(all, p.Sched)
	return all
}

// combinations lists the combinations of the values that a policy uses, the last option by name varying
// fastest: an option that makes no difference is not varied.
func (s Scheduling) combinations(policy string) [][]Argument {
	lists := [][]Argument{nil}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !(sched.Options{Policy: policy}).Uses(name) {
			continue
		}
		lists = multiply(lists, name, s[name])
	}
	return lists
}

// multiply extends each list by each value of a name.
func multiply(lists [][]Argument, name string, values []string) (longer [][]Argument) {
	for _, list := range lists {
		for _, value := range values {
			longer = append(longer, append(slices.Clone(list), Argument{name, value}))
		}
	}
	return longer
}

// size is the number of combinations.
func (s Scheduling) size(policy string) float64 {
	n := 1.0
	for name, values := range s {
		if (sched.Options{Policy: policy}).Uses(name) {
			n *= float64(len(values))
		}
	}
	return n
}

// mergeArguments adds scheduling options to a program's arguments, sorted by names.
func mergeArguments(a, b []Argument) []Argument {
	return slices.SortedStableFunc(slices.Values(slices.Concat(a, b)), func(x, y Argument) int { return cmp.Compare(x.Name, y.Name) })
}

// configureScheduling configures a machine with those arguments of a point that are scheduling options of the grid.
func (x *Experiment) configureScheduling(p Program, at Point, o *sched.Options) {
	options := x.schedulingOf(p)
	for _, a := range at.Arguments {
		if _, is := options[a.Name]; is {
			_ = o.Set(a.Name, a.Value) // checkScheduling has checked it
		}
	}
}

// checkScheduling checks the values of scheduling options, under each policy that uses them.
func (x *Experiment) checkScheduling() error {
	if err := x.checkSchedulingAt("grid.sched", x.Grid.Sched); err != nil {
		return err
	}
	for i, p := range x.Programs {
		if err := x.checkSchedulingAt(fmt.Sprintf("programs[%d].sched", i), p.Sched); err != nil {
			return err
		}
	}
	return nil
}

func (x *Experiment) checkSchedulingAt(field string, s Scheduling) error {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(sched.OptionNames(), name) || len(s[name]) == 0 {
			return fieldError(field+"."+name, name, "one of "+strings.Join(sched.OptionNames(), ", ")+", with at least one value")
		}
		if _, is := x.Grid.Arguments[name]; is {
			return fieldError(field+"."+name, name, "a name that grid.arguments does not have")
		}
		used := false
		for _, policy := range x.policies() {
			if !(sched.Options{Policy: policy}).Uses(name) {
				continue
			}
			used = true
			for i, value := range s[name] {
				o := x.Machine.Sched
				o.Policy = policy
				err := o.Set(name, value)
				if err == nil {
					err = o.Validate()
				}
				var wrong *sched.FieldError
				if errors.As(err, &wrong) && wrong.Field == name {
					return fieldError(fmt.Sprintf("%s.%s[%d]", field, name, i), value, wrong.Allowed)
				}
			}
		}
		if !used {
			return fieldError(field+"."+name, name, "an option that a policy of the grid uses")
		}
	}
	return nil
}

// policies are the grid's.
func (x *Experiment) policies() []string {
	return machineValue(x.Grid.Policy, x.Machine.Sched.WithDefaults().Policy)
}
