// Package cli is the outward form of a command line made with cobra: help with flags in groups
// and their defaults, man pages of the same text, and errors in plain words with suggestions
// for names that are misspelt.
//
// Flags keep their group and their default as annotations (Group, SetDefault). A flag without a
// group is listed under "Flags".
package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Annotations of flags.
const (
	groupAnnotation   = "heddle_group"
	defaultAnnotation = "heddle_default"
)

const (
	noGroup     = "Flags"
	globalGroup = "Help"
)

// Group puts flags that are defined into the group with the title. Groups are listed in the
// order of their first flags.
func Group(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		annotate(flags, name, groupAnnotation, title)
	}
}

// GroupNew puts the flags that define defines into the group with the title.
func GroupNew(flags *pflag.FlagSet, title string, define func()) {
	before := flagNames(flags)
	define()
	for _, name := range flagNames(flags) {
		if !slices.Contains(before, name) {
			Group(flags, title, name)
		}
	}
}

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// SetDefault says in words which default a flag has, where its value does not.
func SetDefault(flags *pflag.FlagSet, name, text string) {
	annotate(flags, name, defaultAnnotation, text)
}

func annotate(flags *pflag.FlagSet, name, key, text string) {
	if err := flags.SetAnnotation(name, key, []string{text}); err != nil {
		panic("bug: " + err.Error())
	}
}

func annotation(f *pflag.Flag, key string) string {
	if list := f.Annotations[key]; len(list) > 0 {
		return list[0]
	}
	return ""
}

// flagGroup is a list of flags under a title.
type flagGroup struct {
	title string
	flags []*pflag.Flag
}

// groupsOf lists the flags of a command, its parents' included, by group, without hidden ones.
func groupsOf(c *cobra.Command) (groups []flagGroup) {
	add := func(title string, f *pflag.Flag) {
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, flagGroup{title: title})
		}
		groups[i].flags = append(groups[i].flags, f)
	}
	hasGroups := false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { hasGroups = hasGroups || annotation(f, groupAnnotation) != "" })
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch title := annotation(f, groupAnnotation); {
		case f.Hidden:
		case title != "":
			add(title, f)
		case f.Name == "help" && hasGroups:
		default:
			add(noGroup, f)
		}
	})
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			add(noGroup, f)
		}
	})
	if help := c.LocalFlags().Lookup("help"); help != nil && hasGroups {
		add(globalGroup, help)
	}
	return groups
}

// describeFlag returns the two columns of a flag: its names with the form of its value, and its
// description with its default.
func describeFlag(f *pflag.Flag) (names, text string) {
	kind, usage := pflag.UnquoteUsage(f)
	switch f.Name {
	case "help":
		usage = "print this help"
	case "version":
		usage = "print the version"
	}
	names = "    --" + f.Name
	if f.Shorthand != "" {
		names = "-" + f.Shorthand + ", --" + f.Name
	}
	if kind != "" && f.Value.Type() != "bool" {
		names += " " + kind
	}
	if text := defaultOf(f); text != "" {
		usage += " (default: " + text + ")"
	}
	return names, usage
}

// defaultOf returns a flag's default as text; it is empty for a flag that is off or unset.
func defaultOf(f *pflag.Flag) string {
	if text := annotation(f, defaultAnnotation); text != "" {
		return text
	}
	if strings.Contains(f.Usage, "(default") {
		return "" // the description has it
	}
	switch f.Value.Type() {
	case "bool":
		if f.DefValue == "true" {
			return "on; --" + f.Name + "=false turns it off"
		}
		return ""
	case "duration":
		if f.DefValue == "0s" {
			return "none"
		}
		return strings.TrimSuffix(strings.TrimSuffix(f.DefValue, "0s"), "0m")
	case "stringSlice", "int32Slice":
		return strings.Trim(f.DefValue, "[]")
	}
	return f.DefValue
}

// allowedForm says which values a flag of pflag's own kinds takes.
func allowedForm(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int32", "int64":
		return "a whole number"
	case "uint", "uint32", "uint64":
		return "a whole number, not negative"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration, such as 90s, 5m or 2h"
	case "int32Slice":
		return "whole numbers, separated by commas"
	}
	return "another value"
}

// Problem says in words why a command line was not understood; flag is the name of the flag
// whose value is wrong, with the value that was found and the form that is allowed, or empty.
type Problem struct {
	Text                 string
	Flag, Found, Allowed string
}

// ExplainFlagError turns an error of pflag into words. Errors of a flag's own Set keep theirs.
func ExplainFlagError(c *cobra.Command, err error) Problem {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		name, _, _ = strings.Cut(name, "=")
		names := flagNames(c.Flags())
		return Problem{Text: fmt.Sprintf("there is no flag --%s", name) + didYouMean(cmp.Or(partOf(name, names), Nearest(name, names)), "--") + describedBy(name, c.Flags())}
	}
	if rest, ok := strings.CutPrefix(text, "unknown shorthand flag: "); ok {
		letter, _, _ := strings.Cut(rest, " in ")
		return Problem{Text: "there is no flag -" + strings.Trim(letter, "'")}
	}
	if rest, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		if _, name, found := strings.Cut(rest, "--"); found {
			return Problem{Text: fmt.Sprintf("--%s needs a value", name)}
		}
		letter, _, _ := strings.Cut(rest, " in ")
		return Problem{Text: fmt.Sprintf("-%s needs a value", strings.Trim(letter, "'"))}
	}
	if rest, ok := strings.CutPrefix(text, "invalid argument "); ok {
		if found, rest, ok := cutQuoted(rest); ok {
			if name, reason, ok := strings.Cut(strings.TrimPrefix(rest, " for \""), "\" flag: "); ok {
				name = name[strings.LastIndex(name, "--")+2:]
				return Problem{Flag: name, Found: fmt.Sprintf("%q", found), Allowed: allowedOf(c.Flags().Lookup(name), reason)}
			}
		}
	}
	return Problem{Text: text}
}

// allowedOf is the form that a flag allows: the reason itself, unless it is in Go's words.
func allowedOf(f *pflag.Flag, reason string) string {
	if f != nil && (strings.Contains(reason, "strconv.") || strings.HasPrefix(reason, "time: ") || strings.HasPrefix(reason, "parsing ")) {
		form := allowedForm(f)
		if bound := largestOf(f); bound != "" && strings.Contains(reason, "value out of range") {
			form += " up to " + bound
		}
		return form
	}
	return reason
}

// largestOf is the largest number that a flag's type holds, or empty.
func largestOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return fmt.Sprint(math.MaxInt64)
	case "uint", "uint64":
		return fmt.Sprint(uint64(math.MaxUint64))
	case "int32":
		return fmt.Sprint(math.MaxInt32)
	case "uint32":
		return fmt.Sprint(uint32(math.MaxUint32))
	}
	return ""
}

// partOf returns the name that is a part of a word with hyphens, as "model" is of "memory-model", or empty.
func partOf(word string, names []string) string {
	parts := strings.Split(word, "-")
	for _, part := range slices.Backward(parts) {
		if len(parts) > 1 && len(part) > 2 && slices.Contains(names, part) {
			return part
		}
	}
	return ""
}

// mostDescribed is how many flags are named whose descriptions have a word.
const mostDescribed = 3

// describedBy names the flags whose descriptions have a word.
func describedBy(word string, flags *pflag.FlagSet) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		isPunctuation := func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }
		if !f.Hidden && slices.Contains(strings.FieldsFunc(f.Usage, isPunctuation), word) && len(names) < mostDescribed {
			names = append(names, "--"+f.Name)
		}
	})
	if len(names) == 0 || len(word) < 4 {
		return ""
	}
	return fmt.Sprintf("; %q is in the description of %s", word, strings.Join(names, ", "))
}

// cutQuoted cuts a quoted Go string off the start of a text.
func cutQuoted(text string) (quoted, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", false
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			var s string
			_, err := fmt.Sscanf(text[:i+1], "%q", &s)
			return s, text[i+1:], err == nil
		}
	}
	return "", "", false
}

// UnknownCommand says in words that there is no such command, and which was probably meant.
func UnknownCommand(c *cobra.Command, name string) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Sprintf("there is no command %q", name) + didYouMean(Nearest(name, names), "")
}

func didYouMean(name, prefix string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s%s?)", prefix, name)
}

// Nearest returns the name that is nearest to a misspelt one by the number of letters to
// change, insert, leave out or exchange with the next, or empty if none is near.
func Nearest(word string, names []string) string {
	best, distance := "", 1+len(word)/3
	if len(word) > 1 {
		distance = max(distance, 2)
	}
	for _, name := range names {
		d := editDistance(word, name)
		if len(word) > 2 && strings.HasPrefix(name, word) {
			d = min(d, 1)
		}
		if d < distance || d == distance && (best == "" || commonPrefix(word, name) > commonPrefix(word, best)) {
			best, distance = name, d
		}
	}
	return best
}

// commonPrefix is the number of bytes that two words begin with.
func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// editDistance is the distance of Damerau and Levenshtein, with transpositions of neighbours.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
