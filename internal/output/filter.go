package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"

	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errTooLong = errs.Define("output-too-long-for-filter",
		"the program's output has more than {limit} bytes, and cannot be filtered",
		"The output is kept in memory until it is filtered.",
		"Have the program print less, or leave the filter out: outputs of any length are compared then.")
	errFilter = errs.Define("filter-failed",
		"the filter {command} of the output failed",
		"The command cannot be started, or ended with another status than 0; the rest of the sentence is its own.",
		"Try the command on the program's output.")
)

// Rule is a step of a filter. One of its fields is set, With besides Replace.
type Rule struct {
	// Replace is a regular expression (Go's syntax); its matches in each line become With, in which $1 is the
	// first group.
	Replace string `json:"replace,omitempty" mapstructure:"replace"`
	With    string `json:"with,omitempty" mapstructure:"with"`
	// Delete is a regular expression: lines with a match are left out.
	Delete string `json:"delete,omitempty" mapstructure:"delete"`
	// Command is a command of the host that gets the output on standard input and prints the filtered one.
	Command []string `json:"command,omitempty" mapstructure:"command"`
}

// Filter is the steps by which an output is made comparable, in their order.
type Filter []Rule

// Wrong finds a field that is not as it must be: its name, the value found, and the values allowed. The name is empty if
// all are right.
func (f Filter) Wrong() (name string, found any, allowed string) {
	for i := range f {
		r := &f[i]
		at := func(field string) string { return fmt.Sprintf("[%d]%s", i, field) }
		set := 0
		for _, is := range []bool{r.Replace != "", r.Delete != "", len(r.Command) > 0} {
			if is {
				set++
			}
		}
		switch {
		case set != 1:
			return at(""), fmt.Sprintf("%d of the fields", set), "one of replace, delete and command"
		case r.With != "" && r.Replace == "":
			return at(".with"), r.With, "only beside replace"
		}
		for _, x := range []struct{ field, text string }{{".replace", r.Replace}, {".delete", r.Delete}} {
			if _, err := regexp.Compile(x.text); err != nil {
				return at(x.field), x.text, "a regular expression"
			}
		}
	}
	return "", nil, ""
}

// Apply filters a text. The filter must be right.
func (f Filter) Apply(ctx context.Context, text []byte) ([]byte, error) {
	for i := range f {
		var err error
		if text, err = f[i].apply(ctx, text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (r *Rule) apply(ctx context.Context, text []byte) ([]byte, error) {
	if len(r.Command) > 0 {
		cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...)
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &stderr
		filtered, err := cmd.Output()
		if err != nil {
			return nil, errFilter.Wrap(errors.Join(err, said(stderr.Bytes())), fmt.Sprintf("%q", r.Command))
		}
		return filtered, nil
	}
	var filtered []byte
	replace, remove := regexp.MustCompile(r.Replace), regexp.MustCompile(r.Delete)
	for line := range bytes.Lines(text) {
		content := bytes.TrimSuffix(line, []byte("\n"))
		end := line[len(content):]
		switch {
		case r.Replace != "":
			filtered = append(append(filtered, replace.ReplaceAll(content, []byte(r.With))...), end...)
		case !remove.Match(content):
			filtered = append(filtered, line...)
		}
	}
	return filtered, nil
}

// said is the text that a command has printed as an error; nil if that is nothing.
func said(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil
	}
	return errors.New(string(text))
}

// MostFiltered is the greatest number of bytes that are filtered.
const MostFiltered = 64 << 20

// Filtered is a writer that keeps its input for a filter.
type Filtered struct {
	text    []byte
	tooLong bool
}

// Write implements io.Writer; it never fails.
func (f *Filtered) Write(p []byte) (int, error) {
	if f.tooLong = f.tooLong || len(f.text)+len(p) > MostFiltered; !f.tooLong {
		f.text = append(f.text, p...)
	}
	return len(p), nil
}

// Sum identifies the input after a filter.
func (f *Filtered) Sum(ctx context.Context, by Filter) (Sum, error) {
	if f.tooLong {
		return Sum{}, errTooLong.New(MostFiltered)
	}
	text, err := by.Apply(ctx, f.text)
	if err != nil {
		return Sum{}, err
	}
	m := NewMeter()
	_, _ = m.Write(text) // never fails
	return m.Sum(), nil
}
