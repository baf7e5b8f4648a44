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

func (p *printer) appendField(name string) {
	if len(p.b) > 0 {
		p.b = append(p.b, ' ')
	}
	p.b = append(p.b, name...)
	p.b = append(p.b, '=')
}

func (p *printer) numberField(name string, as format, v uint64) uint64 {
	p.appendField(name)
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

func (p *printer) nameField(name string, list []string, v uint64) uint64 {
	p.appendField(name)
	if v < uint64(len(list)) {
		p.b = append(p.b, list[v]...)
	} else {
		p.b = strconv.AppendUint(p.b, v, 10)
	}
	return v
}

func (p *printer) textField(name, v string) string {
	p.appendField(name)
	p.b = strconv.AppendQuoteToASCII(p.b, v)
	return v
}

func (p *printer) bytesField(name string, v []byte) []byte {
	p.appendField(name)
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

func (p *printer) listField(name string, n int, _ func(int), item func(int)) {
	p.appendField(name)
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

func (p *parser) failLine(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.s = ""
}

// takeField takes the field of a name off the line.
func (p *parser) takeField(name string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.s, " "), name+"=")
	if !ok {
		p.failLine("%q where %s= is expected", excerpt(p.s), name)
		return ""
	}
	end := strings.IndexByte(rest, ' ')
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			p.failLine("%s has no closing quote", name)
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

func (p *parser) numberField(name string, as format, _ uint64) uint64 {
	text := p.takeField(name)
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
		p.failLine("%s is %q, which is no number of its kind", name, text)
	}
	return v
}

func (p *parser) nameField(name string, list []string, _ uint64) uint64 {
	text := p.takeField(name)
	if i := slices.Index(list, text); i >= 0 {
		return uint64(i)
	}
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		p.failLine("%s is %q; allowed: %s", name, text, strings.Join(list, ", "))
	}
	return v
}

func (p *parser) textField(name, _ string) string {
	text := p.takeField(name)
	v, err := strconv.Unquote(text)
	if err != nil {
		p.failLine("%s is %s, which is no quoted text", name, text)
	}
	return v
}

func (p *parser) bytesField(name string, _ []byte) []byte {
	v, err := parseBytes(p.takeField(name))
	if err != nil {
		p.failLine("%s is neither quoted text nor hexadecimal", name)
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

func (p *parser) listField(name string, _ int, grow func(int), item func(int)) {
	n := p.numberField(name, decimal, 0)
	if n > uint64(len(p.s)) {
		p.failLine("%s is %d, and the line is shorter", name, n)
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

// recordText is the text form of a record: of an event its fields, of a document
// itself, of all else and of malformed records the bytes.
func recordText(b []byte, kind Kind, record []byte) []byte {
	if kind == ManifestK || kind == SummaryK {
		if !bytes.ContainsAny(record, "\n\r") && bytes.HasPrefix(record, []byte("{")) {
			return append(b, record...)
		}
	}
	if e := newEvent(kind); e != nil && decodeInto(e, record) {
		var again encoder
		eventFields(&again, e)
		if bytes.Equal(again.b, record) {
			p := printer{}
			eventFields(&p, e)
			return append(b, p.b...)
		}
	}
	return append(append(b, "bytes "...), appendBytes(nil, record)...)
}

func decodeInto(e any, record []byte) bool {
	d := decoder{b: record}
	eventFields(&d, e)
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
	eventFields(&p, e)
	if p.err == nil && strings.TrimSpace(p.s) != "" {
		p.failLine("%q after the last field", excerpt(p.s))
	}
	var out encoder
	eventFields(&out, e)
	return out.b, p.err
}

var errText = errs.Define("trace-text",
	"{file}:{line}: {problem}",
	"The file is not output of heddle trace dump; the rest of the sentence says where it differs.",
	"Load the output of heddle trace dump, without options that leave something out.")
