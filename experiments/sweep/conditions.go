package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parameter is a parameter of the grid, by which rows are chosen, compared and drawn.
type parameter struct {
	name  string
	value func(Point) string // missing where the point has none
	set   func(*Point, string)
}

// parameters lists those of the experiment.
func (x *Experiment) parameters() []parameter {
	all := []parameter{
		{"program", func(p Point) string { return p.Program }, func(p *Point, v string) { p.Program = v }},
		{"policy", func(p Point) string { return p.Policy }, func(p *Point, v string) { p.Policy = v }},
		{"model", func(p Point) string { return p.Memory.Model }, func(p *Point, v string) { p.Memory.Model = v }},
		{"commit", func(p Point) string { return textOrDash(p.Memory.Commit) }, func(p *Point, v string) { p.Memory.Commit = v }},
		{"capacity", func(p Point) string { return orDash(p.Memory.Capacity) }, func(p *Point, v string) { p.Memory.Capacity, _ = strconv.Atoi(v) }},
		{"cores", func(p Point) string { return strconv.Itoa(p.Cores) }, func(p *Point, v string) {
			p.Cores, _ = strconv.Atoi(v)
			p.CoresAs = v
		}},
		{"threads", func(p Point) string { return orDash(p.Threads) }, func(p *Point, v string) {
			p.Threads, _ = strconv.Atoi(v)
			if p.CoresAs == "threads" {
				p.Cores = p.Threads
			}
		}},
	}
	for _, name := range x.argumentNames() {
		all = append(all, parameter{name, func(p Point) string { return p.argument(name) }, func(p *Point, v string) {
			p.Arguments = slices.Clone(p.Arguments)
			for i := range p.Arguments {
				if p.Arguments[i].Name == name {
					p.Arguments[i].Value = v
				}
			}
		}})
	}
	return all
}

// argument is the value of an argument, or missing.
func (p Point) argument(name string) string {
	for _, a := range p.Arguments {
		if a.Name == name {
			return a.Value
		}
	}
	return missing
}

// findParameter finds a parameter for an option.
func (x *Experiment) findParameter(name, option string) (parameter, error) {
	all := x.parameters()
	var names []string
	for _, p := range all {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return parameter{}, wrongChoice(option, fmt.Sprintf("%q", name), strings.Join(names, ", "))
}

// condition is about a parameter: its value is in a list, is not in it, or is on one
// side of a number.
type condition struct {
	parameter parameter
	operator  string
	values    []string
}

// operators of conditions; longer ones come before their beginnings.
var operators = []string{"!=", "<=", ">=", "=", "<", ">"}

// parseConditions reads conditions with blanks between them: "policy=rr,timed threads>=4".
func (x *Experiment) parseConditions(text, option string) (list []condition, err error) {
	for _, word := range strings.Fields(text) {
		at := strings.IndexAny(word, "!<>=")
		c := condition{}
		for _, o := range operators {
			if at > 0 && strings.HasPrefix(word[at:], o) {
				c.operator, c.values = o, strings.Split(word[at+len(o):], ",")
				break
			}
		}
		if c.operator == "" {
			return nil, wrongChoice(option, fmt.Sprintf("%q", word), "PARAMETER=VALUE,... with one of "+strings.Join(operators, " "))
		}
		if c.parameter, err = x.findParameter(word[:at], option); err != nil {
			return nil, err
		}
		if _, err := strconv.ParseFloat(c.values[0], 64); strings.ContainsAny(c.operator, "<>") && (err != nil || len(c.values) > 1) {
			return nil, wrongChoice(option, fmt.Sprintf("%q", word), "a number after "+c.operator)
		}
		list = append(list, c)
	}
	return list, nil
}

// holds reports whether a point meets the condition. A point without the parameter does not.
func (c condition) holds(p Point) bool {
	value := c.parameter.value(p)
	switch c.operator {
	case "=":
		return slices.Contains(c.values, value)
	case "!=":
		return !slices.Contains(c.values, value)
	}
	number, err := strconv.ParseFloat(value, 64)
	bound, _ := strconv.ParseFloat(c.values[0], 64)
	if err != nil {
		return false
	}
	order := cmp.Compare(number, bound)
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// holdAll reports whether a point meets all conditions.
func holdAll(list []condition, p Point) bool {
	return !slices.ContainsFunc(list, func(c condition) bool { return !c.holds(p) })
}
