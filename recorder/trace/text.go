package trace

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
)

// printer is the archive that makes the text form: name=value, with a space
// between.
type printer struct{ b []byte }

func (p *printer) field(name string) {
	if len(p.b) > 0 {
		p.b = append(p.b, ' ')
	}
	p.b = append(p.b, name...)
	p.b = append(p.b, '=')
}

func (p *printer) number(name string, as format, v uint64) uint64 {
	p.field(name)
	p.b = appendNumber(p.b, as, v)
	return v
}

func appendNumber(b []byte, as format, v uint64) []byte {
	switch as {
	case signed:
		return strconv.AppendInt(b, int64(v), 10)
	case hexadecimal:
		return strconv.AppendUint(append(b, "0x"...), v, 16)
	case yesno:
		return strconv.AppendBool(b, v != 0)
	default:
		return strconv.AppendUint(b, v, 10)
	}
}

func (p *printer) name(name string, list []string, v uint64) uint64 {
	p.field(name)
	if v < uint64(len(list)) {
		p.b = append(p.b, list[v]...)
	} else {
		p.b = strconv.AppendUint(p.b, v, 10)
	}
	return v
}

func (p *printer) text(name, v string) string {
	p.field(name)
	p.b = strconv.AppendQuoteToASCII(p.b, v)
	return v
}

func (p *printer) bytes(name string, v []byte) []byte {
	p.field(name)
	p.b = appendBytes(p.b, v)
	return v
}

// appendBytes shows text in quotes, and other bytes in hexadecimal.
func appendBytes(b, v []byte) []byte {
	if slices.ContainsFunc(v, func(c byte) bool { return (c < ' ' || c > '~') && c != '\n' && c != '\t' }) {
		return hex.AppendEncode(b, v)
	}
	return strconv.AppendQuoteToASCII(b, string(v))
}

func (p *printer) each(name string, n int, _ func(int), item func(int)) {
	p.field(name)
	p.b = strconv.AppendInt(p.b, int64(n), 10)
	for i := range n {
		item(i)
	}
}

// parser is the archive that reads the text form. Fields come in their order.
type parser struct {
	s   string
	err error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.s = ""
}

// value takes the field of a name off the line.
func (p *parser) value(name string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.s, " "), name+"=")
	if !ok {
		p.fail("%q where %s= is expected", excerpt(p.s), name)
		return ""
	}
	end := strings.IndexByte(rest, ' ')
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			p.fail("%s has no closing quote", name)
			return ""
		}
		end = len(quoted)
	}
	if end < 0 {
		end = len(rest)
	}
	p.s = rest[end:]
	return rest[:end]
}

// excerpt is the begin of a text, for an error.
func excerpt(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

func (p *parser) number(name string, as format, _ uint64) uint64 {
	text := p.value(name)
	var v uint64
	var err error
	switch as {
	case signed:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v = uint64(n)
	case yesno:
		var yes bool
		if yes, err = strconv.ParseBool(text); yes {
			v = 1
		}
	default:
		v, err = strconv.ParseUint(text, 0, 64)
	}
	if err != nil {
		p.fail("%s is %q, which is no number of its kind", name, text)
	}
	return v
}

func (p *parser) name(name string, list []string, _ uint64) uint64 {
	text := p.value(name)
	if i := slices.Index(list, text); i >= 0 {
		return uint64(i)
	}
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		p.fail("%s is %q; allowed: %s", name, text, strings.Join(list, ", "))
	}
	return v
}

func (p *parser) text(name, _ string) string {
	text := p.value(name)
	v, err := strconv.Unquote(text)
	if err != nil {
		p.fail("%s is %s, which is no quoted text", name, text)
	}
	return v
}

func (p *parser) bytes(name string, _ []byte) []byte {
	v, err := parseBytes(p.value(name))
	if err != nil {
		p.fail("%s is neither quoted text nor hexadecimal", name)
	}
	return v
}

func parseBytes(text string) ([]byte, error) {
	if strings.HasPrefix(text, `"`) {
		s, err := strconv.Unquote(text)
		return []byte(s), err
	}
	return hex.DecodeString(text)
}

func (p *parser) each(name string, _ int, grow func(int), item func(int)) {
	n := p.number(name, decimal, 0)
	if n > uint64(len(p.s)) {
		p.fail("%s is %d, and the line is shorter", name, n)
		return
	}
	if n > 0 {
		grow(int(n))
	}
	for i := range int(n) {
		item(i)
	}
}

// newEvent returns a pointer to an event of a kind, or nil if its records are
// not events.
func newEvent(kind Kind) any {
	if k, ok := kinds[kind]; ok {
		return k()
	}
	return nil
}

// line is the text form of a record: of an event its fields, of a document
// itself, of all else and of malformed records the bytes.
func line(b []byte, kind Kind, record []byte) []byte {
	if kind == ManifestK || kind == SummaryK {
		if !bytes.ContainsAny(record, "\n\r") && bytes.HasPrefix(record, []byte("{")) {
			return append(b, record...)
		}
	}
	if e := newEvent(kind); e != nil && decodeInto(e, record) {
		var again encoder
		fields(&again, e)
		if bytes.Equal(again.b, record) {
			p := printer{}
			fields(&p, e)
			return append(b, p.b...)
		}
	}
	return append(append(b, "bytes "...), appendBytes(nil, record)...)
}

func decodeInto(e any, record []byte) bool {
	d := decoder{b: record}
	fields(&d, e)
	return !d.bad && len(d.b) == 0
}

// parseLine is the opposite.
func parseLine(kind Kind, text string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(text, "bytes "); ok {
		return parseBytes(rest)
	}
	if kind == ManifestK || kind == SummaryK {
		return []byte(text), nil
	}
	e := newEvent(kind)
	if e == nil {
		return nil, fmt.Errorf("%q where the bytes of a record of stream %s are expected", excerpt(text), kind)
	}
	p := parser{s: text}
	fields(&p, e)
	if p.err == nil && strings.TrimSpace(p.s) != "" {
		p.fail("%q after the last field", excerpt(p.s))
	}
	var out encoder
	fields(&out, e)
	return out.b, p.err
}

var errText = errs.Define("trace-text",
	"{file}:{line}: {problem}",
	"The file is not output of heddle trace dump; the rest of the sentence says where it differs.",
	"Load the output of heddle trace dump, without options that leave something out.")
