package sweep

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/output"
)

// Value is a number that is parsed from the output of each run.
type Value struct {
	// Name is the value's column in tables.
	Name string `mapstructure:"name"`
	// Pattern is a regular expression of Go whose first group, or whole match, is the number; ^ and $
	// are the ends of a line.
	Pattern string `mapstructure:"pattern"`
	// Unit stands in heads and at axes.
	Unit string `mapstructure:"unit"`
	// From is the stream, stdout or stderr.
	From string `mapstructure:"from"`
	// Pick is the match that counts: first, last, the sum, mean, min or max of all, or their count.
	Pick string `mapstructure:"pick"`
}

// The streams that values are parsed from.
const (
	streamStdout = "stdout"
	streamStderr = "stderr"
)

// picks are the values of Value.Pick. They are given at least one number.
var picks = map[string]func([]float64) float64{
	"first": func(n []float64) float64 { return n[0] },
	"last":  func(n []float64) float64 { return n[len(n)-1] },
	"sum":   sumOf,
	"mean":  func(n []float64) float64 { return sumOf(n) / float64(len(n)) },
	"min":   func(n []float64) float64 { return slices.Min(n) },
	"max":   func(n []float64) float64 { return slices.Max(n) },
	"count": func(n []float64) float64 { return float64(len(n)) },
}

var pickNames = []string{"first", "last", "sum", "mean", "min", "max", "count"}

func sumOf(numbers []float64) (sum float64) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

func (v *Value) completeFields() {
	v.From, v.Pick = cmp.Or(v.From, streamStdout), cmp.Or(v.Pick, pickNames[0])
}

func (x *Experiment) checkValues() error {
	seen := map[string]bool{}
	for _, m := range x.ownMeasures() {
		seen[m.name] = true
	}
	for i, v := range x.Values {
		field := fmt.Sprintf("values[%d].", i)
		switch {
		case !plainName().MatchString(v.Name):
			return fieldError(field+"name", v.Name, plainNameForm)
		case seen[v.Name]:
			return fieldError(field+"name", v.Name, "a name that no other value or measure has")
		case v.Pattern == "":
			return fieldError(field+"pattern", v.Pattern, "a regular expression")
		case v.From != streamStdout && v.From != streamStderr:
			return fieldError(field+"from", v.From, "stdout, stderr")
		case picks[v.Pick] == nil:
			return fieldError(field+"pick", v.Pick, strings.Join(pickNames, ", "))
		}
		seen[v.Name] = true
		if _, err := v.compile(); err != nil {
			return fieldError(field+"pattern", v.Pattern, "a regular expression of Go: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	return nil
}

func (v Value) compile() (*regexp.Regexp, error) { return regexp.Compile("(?m)" + v.Pattern) }

// parsedStreams lists the streams that values are parsed from.
func (x *Experiment) parsedStreams() (streams []string) {
	for _, v := range x.Values {
		if !slices.Contains(streams, v.From) {
			streams = append(streams, v.From)
		}
	}
	return streams
}

// parse returns the value in a text, or NaN if the pattern does not match or a match is no number.
func (v Value) parse(pattern *regexp.Regexp, text []byte) float64 {
	var numbers []float64
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		word := match[0]
		if len(match) > 1 {
			word = match[1]
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(string(word)), 64)
		if v.Pick != "count" && (err != nil || math.IsInf(n, 0)) {
			return math.NaN()
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) > 0:
		return picks[v.Pick](numbers)
	case v.Pick == "count":
		return 0
	}
	return math.NaN()
}

// parser parses the values of results, of each text once.
type parser struct {
	c        *collection
	patterns []*regexp.Regexp
	known    map[string][]float64 // by stream and digest
}

func (c *collection) newParser() (*parser, error) {
	p := &parser{c: c, known: map[string][]float64{}}
	c.unparsed = map[string]int{}
	for _, v := range c.x.Values {
		pattern, err := v.compile()
		if err != nil {
			return nil, fieldError("values", v.Pattern, err.Error())
		}
		p.patterns = append(p.patterns, pattern)
	}
	return p, nil
}

// addValues sets the values among a run's measures.
func (p *parser) addValues(measures []float64, report store.Report) error {
	for i, v := range p.c.x.Values {
		numbers, err := p.parseStream(v.From, streamOf(report, v.From))
		if err != nil {
			return err
		}
		at := len(p.c.x.ownMeasures()) + i
		if measures[at] = numbers[i]; math.IsNaN(numbers[i]) {
			p.c.unparsed[v.Name]++
		}
	}
	return nil
}

// parseStream returns the values of a stream's text, NaN for those of the other.
func (p *parser) parseStream(stream string, sum output.Sum) ([]float64, error) {
	key := stream + sum.SHA256
	if numbers, ok := p.known[key]; ok {
		return numbers, nil
	}
	text, ok, err := p.c.store.Output(sum)
	if err != nil {
		return nil, err
	}
	numbers := make([]float64, len(p.patterns))
	for i, v := range p.c.x.Values {
		if numbers[i] = math.NaN(); ok && v.From == stream {
			numbers[i] = v.parse(p.patterns[i], text)
		}
	}
	p.known[key] = numbers
	return numbers, nil
}
