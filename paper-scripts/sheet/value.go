package sheet

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Value is a number as a table or a paper prints it. Without a Number it is a range, of which one end may
// be open (nil).
type Value struct {
	Number, Low, High *float64
	Percent           bool // it was printed with a percent sign
}

var (
	plainNumber = regexp.MustCompile(`^([+-]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)([KMG]?)( ?%)?$`)
	fraction    = regexp.MustCompile(`^([0-9]+) of ([0-9]+)(?:, [0-9]+ left)?$`)
	spread      = regexp.MustCompile(`^(\S+) to (\S+)$`)
)

// openEnds are words before a number that is the least or the greatest.
var openEnds = []struct {
	word  string
	least bool
}{
	{"over ", true},
	{"above ", true},
	{"at least ", true},
	{"under ", false},
	{"below ", false},
	{"at most ", false},
	{"within ", false},
}

// Parse reads a cell: "1,234", "2.68M", "+39.1 %", "1.2 to 6", "at most 5", "over 0.5", "3 of 5" (a part of 1)
// and "all" (1); of a list such as "5, 5" the number if all are the same. ok is false if it is no number.
func Parse(cell string) (v Value, ok bool) {
	cell = strings.TrimPrefix(strings.TrimSpace(cell), "nearly ")
	number := func(n float64, percent bool) (Value, bool) { return Value{Number: &n, Percent: percent}, true }
	if n, percent, ok := parseNumber(cell); ok {
		return number(n, percent)
	}
	if cell == "all" {
		return number(1, false)
	}
	if m := fraction.FindStringSubmatch(cell); m != nil {
		part, _ := strconv.ParseFloat(m[1], 64)
		if of, _ := strconv.ParseFloat(m[2], 64); of > 0 {
			return number(part/of, false)
		}
	}
	for _, end := range openEnds {
		if rest, found := strings.CutPrefix(cell, end.word); found {
			n, percent, ok := parseNumber(rest)
			if !ok {
				return Value{}, false
			}
			if end.least {
				return Value{Low: &n, Percent: percent}, true
			}
			return Value{High: &n, Percent: percent}, true
		}
	}
	if m := spread.FindStringSubmatch(cell); m != nil {
		low, _, ok1 := parseNumber(m[1])
		high, percent, ok2 := parseNumber(m[2])
		if ok1 && ok2 {
			return Value{Low: &low, High: &high, Percent: percent}, true
		}
	}
	if first, rest, found := strings.Cut(cell, ", "); found {
		for _, other := range strings.Split(rest, ", ") {
			if other != first {
				return Value{}, false
			}
		}
		return Parse(first)
	}
	return Value{}, false
}

func parseNumber(text string) (n float64, percent, ok bool) {
	m := plainNumber.FindStringSubmatch(text)
	if m == nil {
		return 0, false, false
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	switch m[2] {
	case "K":
		n *= 1e3
	case "M":
		n *= 1e6
	case "G":
		n *= 1e9
	}
	return n, m[3] != "", err == nil
}

// asTimes is a percentage as a factor: +39.1 % is 1.391.
func (v Value) asTimes() Value {
	if !v.Percent {
		return v
	}
	for _, n := range []**float64{&v.Number, &v.Low, &v.High} {
		if *n != nil {
			times := 1 + **n/100
			*n = &times
		}
	}
	v.Percent = false
	return v
}

// Comparison is ours beside the paper's.
type Comparison struct {
	// Ratio is ours in times of the paper's, or of the nearer end of its range, 1 within it. NaN if there is
	// none: for words, and where the paper has 0.
	Ratio float64
	// Differs by more than two times or, of words and of 0, at all.
	Differs bool
}

// Compare compares two cells. known is false if one of them has no value, or ours is a number and the paper's
// are words, or the other way round.
func (p Pair) Compare(ours, paper string) (c Comparison, known bool) {
	x, isNumber := Parse(ours)
	y, also := Parse(paper)
	switch {
	case isBlank(ours), isBlank(paper), isNumber != also, isNumber && x.Number == nil:
		return Comparison{}, false
	case !isNumber:
		return Comparison{math.NaN(), !agree(ours, paper)}, true
	}
	if y.Percent && !x.Percent && y.Number == nil {
		y = y.asTimes() // "within 15 %" of a time that is printed as a factor
	}
	n := *x.Number
	if p.Scale != 0 {
		n *= p.Scale
	}
	to := n
	switch {
	case y.Number != nil:
		to = *y.Number
	case y.Low != nil && n < *y.Low:
		to = *y.Low
	case y.High != nil && n > *y.High:
		to = *y.High
	}
	if n == to {
		return Comparison{1, false}, true
	}
	if to == 0 {
		return Comparison{math.NaN(), true}, true
	}
	r := n / to
	return Comparison{r, r > 2 || r < 0.5}, true
}

func isBlank(cell string) bool { return cell == "" || cell == "-" || cell == "n/a" }

var (
	count       = regexp.MustCompile(` [0-9]+$`)
	parenthesis = regexp.MustCompile(` \(.*\)$`)
)

// agree reports whether each of our words, without its number of times, is one of the paper's
// alternatives: "A-BB 3" is of "A-BB or A-AB".
func agree(ours, paper string) bool {
	of := map[string]bool{paper: true}
	for _, text := range strings.Split(paper, ", ") {
		for _, word := range strings.Split(text, " or ") {
			of[word] = true
		}
	}
	ours = parenthesis.ReplaceAllString(ours, "")
	if of[ours] {
		return true
	}
	for _, word := range strings.Split(ours, ", ") {
		if !of[count.ReplaceAllString(word, "")] && !strings.Contains(paper, word) {
			return false
		}
	}
	return true
}

// Format writes a ratio with two or three digits.
func (c Comparison) Format() string {
	switch r := math.Abs(c.Ratio); {
	case math.IsNaN(c.Ratio) && c.Differs:
		return "differs"
	case math.IsNaN(c.Ratio):
		return "same"
	case r >= 100, r == 0:
		return strconv.FormatFloat(c.Ratio, 'f', 0, 64)
	case r >= 10:
		return strconv.FormatFloat(c.Ratio, 'f', 1, 64)
	case r >= 0.01:
		return strconv.FormatFloat(c.Ratio, 'f', 2, 64)
	}
	return strconv.FormatFloat(c.Ratio, 'g', 1, 64)
}
