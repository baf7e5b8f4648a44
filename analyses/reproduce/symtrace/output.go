package symtrace

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// conversion is a conversion of printf(3) that is understood: of whole numbers, and
// strings.
var conversion = regexp.MustCompile(`%([-+ 0#]*)([0-9]*)(hh|h|ll|l|z|j)?([dioxXucs%])`)

// printed is a number that a program prints: by which conversion, and whether it is
// an argument of 64 bits.
type printed struct {
	base int
	wide bool
	text bool
}

// expects makes of a format the expression that finds its text, with a group for each
// argument; false: it has something that is not understood.
func expects(format string) (*regexp.Regexp, []printed, bool) {
	var pattern strings.Builder
	var all []printed
	rest := format
	for {
		at := conversion.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		length := ""
		if at[6] >= 0 {
			length = rest[at[6]:at[7]]
		}
		p := printed{wide: strings.ContainsAny(length, "lzj")}
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
	return r, all, err == nil && !strings.Contains(conversion.ReplaceAllString(format, ""), "%")
}

// prints notes how what a call prints can be something else than it should be.
// Argument number format has the format.
func (w *walker) prints(format int) {
	b := w.b
	if b.options.Output == nil {
		return
	}
	text := w.text(format)
	r, all, ok := expects(text)
	if !ok || text == "" {
		return
	}
	found := r.FindSubmatch(b.options.Output)
	if found == nil {
		b.differs = append(b.differs, b.pool.Bool(true))
		return
	}
	for i, p := range all {
		if n := format + 1 + i; n <= len(argumentRegisters) && !p.text {
			b.differs = append(b.differs, w.isNot(n, p, string(found[i+1])))
		}
	}
}

// isNot is that an argument is not the number that a text has.
func (w *walker) isNot(n int, p printed, text string) *symbolic.Expr {
	pool, bits := w.b.pool, 32
	if p.wide {
		bits = 64
	}
	value, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), p.base, 64)
	if err != nil {
		signed, _ := strconv.ParseInt(text, p.base, 64)
		value = uint64(signed)
	}
	return pool.Not(pool.Eq(pool.Extract(w.argument(n), 0, bits), pool.Word(value, bits)))
}

// differs is that the program prints something else than it should.
func (b *builder) otherOutput() *symbolic.Expr {
	any := b.pool.Bool(false)
	for _, d := range b.differs {
		any = b.pool.Or(any, d)
	}
	return any
}
