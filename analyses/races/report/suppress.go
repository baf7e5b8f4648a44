package report

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errRuleFile = errs.Define("races-suppressions-unreadable",
		"the suppressions {file} cannot be read",
		"The rest of the sentence is the system's.",
		"Give heddle races --suppress FILE a file with a rule a line (docs/races.md).")
	errRule = errs.Define("races-suppression",
		"{file}:{line}: {rule} is no suppression: {problem}",
		"A line of the file has neither a rule nor a comment.",
		"Write fun:PATTERN, obj:PATTERN or src:FILE:LINE, with top: before it for the innermost frame alone, or # and a comment.")
)

// Rule leaves races out by a frame of either access.
type Rule struct {
	// Text is the rule, from line Line of File.
	Text string `json:"rule"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Races counts the pairs of instructions that it left out, Instances their races.
	Races     int    `json:"races"`
	Instances uint64 `json:"instances"`

	top     bool
	matches func(*Frame) bool
}

// ReadRules reads files of suppressions. Errors name file and line.
func ReadRules(files []string) ([]*Rule, error) {
	var rules []*Rule
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, errRuleFile.Wrap(err, file)
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			r := &Rule{Text: line, File: file, Line: i + 1}
			if problem := r.parse(); problem != "" {
				return nil, errRule.New(file, i+1, line, problem)
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// parse reads the rule's text, and returns the problem that it has, if any.
func (r *Rule) parse() (problem string) {
	rest, top := strings.CutPrefix(r.Text, "top:")
	r.top = top
	kind, pattern, _ := strings.Cut(rest, ":")
	switch {
	case kind != "fun" && kind != "obj" && kind != "src":
		return "it begins with none of fun:, obj:, src:, top:"
	case pattern == "":
		return "it has no pattern"
	}
	switch kind {
	case "fun":
		like := glob(pattern)
		r.matches = func(f *Frame) bool { return f.Function != "" && like.MatchString(f.Function) }
	case "obj":
		like := fileGlob(pattern)
		r.matches = func(f *Frame) bool { return f.Image != "" && like(f.Image) }
	case "src":
		return r.parseSource(pattern)
	}
	return ""
}

func (r *Rule) parseSource(pattern string) (problem string) {
	file, number, hasLine := strings.Cut(pattern, ":")
	line := 0
	if hasLine {
		var err error
		if line, err = strconv.Atoi(number); err != nil || line < 1 {
			return fmt.Sprintf("%q is no number of a line", number)
		}
	}
	if file == "" {
		return "it has no pattern"
	}
	like := fileGlob(file)
	r.matches = func(f *Frame) bool { return f.File != "" && like(f.File) && (line == 0 || f.Line == line) }
	return ""
}

// glob matches a whole text; * stands for any characters, also none, and ? for one.
func glob(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	return regexp.MustCompile(`(?s)^` + strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(text) + `$`)
}

// fileGlob matches a whole path or, with a pattern without slashes, its last element.
func fileGlob(pattern string) func(string) bool {
	like := glob(pattern)
	if strings.Contains(pattern, "/") {
		return like.MatchString
	}
	return func(name string) bool { return like.MatchString(path.Base(name)) }
}

// covers reports whether the rule leaves a race out.
func (r *Rule) covers(race *Race) bool {
	for _, a := range []*Access{&race.First, &race.Second} {
		for i := range a.Stack {
			if r.matches(&a.Stack[i]) {
				return true
			}
			if r.top {
				break
			}
		}
	}
	return false
}

// suppresses counts a race by the first rule that covers it, if any does.
func (m *maker) suppresses(key pair, race *Race, count uint64) bool {
	for _, r := range m.o.Rules {
		if !r.covers(race) {
			continue
		}
		if !m.suppressed[key] {
			m.suppressed[key] = true
			m.report.Suppressed++
			r.Races++
		}
		r.Instances += count
		m.report.SuppressedInstances += count
		return true
	}
	return false
}
