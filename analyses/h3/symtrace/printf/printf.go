// Package printf finds in the output of a program the numbers that it printed by a format of
// printf(3).
package printf

import (
	"regexp"
	"strings"
	"sync"
)

// conversionPattern is a conversion of printf(3) that is understood: of whole numbers, and
// strings.
var conversionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%([-+ 0#]*)([0-9]*)(hh|h|ll|l|z|j)?([dioxXucs%])`)
})

// Argument is a number that a program prints: by which conversion, and whether it is an argument of
// 64 bits; or a text.
type Argument struct {
	Base int
	Wide bool
	Text bool
}

// Compile makes of a format the expression that finds its text, with a group for each argument;
// false: it has something that is not understood.
func Compile(format string) (*regexp.Regexp, []Argument, bool) {
	var pattern strings.Builder
	var all []Argument
	rest := format
	for {
		at := conversionPattern().FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		length := ""
		if at[6] >= 0 {
			length = rest[at[6]:at[7]]
		}
		p := Argument{Wide: strings.ContainsAny(length, "lzj")}
		switch kind := rest[at[8]:at[9]]; kind {
		case "%":
			pattern.WriteString("%")
			rest = rest[at[1]:]
			continue
		case "s", "c":
			p.Text = true
			pattern.WriteString(`(.*?)`)
		case "x", "X":
			p.Base = 16
			pattern.WriteString(`\s*(?:0x)?([0-9a-fA-F]+)`)
		case "o":
			p.Base = 8
			pattern.WriteString(`\s*([0-7]+)`)
		default:
			p.Base = 10
			pattern.WriteString(`\s*([-+]?[0-9]+)`)
		}
		all = append(all, p)
		rest = rest[at[1]:]
	}
	pattern.WriteString(regexp.QuoteMeta(rest))
	r, err := regexp.Compile(pattern.String())
	return r, all, err == nil && !strings.Contains(conversionPattern().ReplaceAllString(format, ""), "%")
}
