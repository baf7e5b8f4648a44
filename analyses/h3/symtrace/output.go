package symtrace

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// conversionPattern is a conversion of printf(3) that is understood: of whole numbers, and
// strings.
var conversionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%([-+ 0#]*)([0-9]*)(hh|h|ll|l|z|j)?([dioxXucs%])`)
})

// printedArgument is a number that a program prints: by which conversion, and whether it is
// an argument of 64 bits.
type printedArgument struct {
	base int
	wide bool
	text bool
}

// compileFormat makes of a format the expression that finds its text, with a group for each
// argument; false: it has something that is not understood.
func compileFormat(format string) (*regexp.Regexp, []printedArgument, bool) {
	var pattern strings.Builder
	var all []printedArgument
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
		p := printedArgument{wide: strings.ContainsAny(length, "lzj")}
		switch kind := rest[at[8]:at[9]]; kind {
		case "%":
			pattern.WriteString("%")
			rest = rest[at[1]:]
			continue
		case "s", "c":
			p.text = true
			pattern.WriteString(`(.*?)`)
		case "x", "X":
			p.base = 16
			pattern.WriteString(`\s*(?:0x)?([0-9a-fA-F]+)`)
		case "o":
			p.base = 8
			pattern.WriteString(`\s*([0-7]+)`)
		default:
			p.base = 10
			pattern.WriteString(`\s*([-+]?[0-9]+)`)
		}
		all = append(all, p)
		rest = rest[at[1]:]
	}
	pattern.WriteString(regexp.QuoteMeta(rest))
	r, err := regexp.Compile(pattern.String())
	return r, all, err == nil && !strings.Contains(conversionPattern().ReplaceAllString(format, ""), "%")
}

// compareOutput notes how the text that a call prints can differ from the right output. The format
// is argument number format.
func (w *threadExec) compareOutput(format int) {
	b := w.pass
	if b.options.Output == nil {
		return
	}
	text := w.stringArgument(format)
	r, all, ok := compileFormat(text)
	if !ok || text == "" {
		return
	}
	found := r.FindSubmatch(b.options.Output)
	if found == nil {
		b.outputDifferences = append(b.outputDifferences, b.pool.Bool(true))
		return
	}
	for i, p := range all {
		if n := format + 1 + i; n <= len(argumentRegisters) && !p.text {
			b.outputDifferences = append(b.outputDifferences, w.argumentDiffers(n, p, string(found[i+1])))
		}
	}
}

// argumentDiffers is that an argument is not the number that a text has.
func (w *threadExec) argumentDiffers(n int, p printedArgument, text string) *symbolic.Expr {
	pool, bits := w.pass.pool, 32
	if p.wide {
		bits = 64
	}
	value, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), p.base, 64)
	if err != nil {
		signed, _ := strconv.ParseInt(text, p.base, 64)
		value = uint64(signed)
	}
	return pool.Not(pool.Eq(pool.Extract(w.callArgument(n), 0, bits), pool.Word(value, bits)))
}

// differs is that the program prints something else than it should.
func (b *pass) outputDiffers() *symbolic.Expr {
	any := b.pool.Bool(false)
	for _, d := range b.outputDifferences {
		any = b.pool.Or(any, d)
	}
	return any
}
