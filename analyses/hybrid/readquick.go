package hybrid

import (
	"runtime"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// The lines of constraints come last and are most of a long file. Lines in the form in which Write
// writes them are read in parts, at the same time; parser.parseLine reads all others, and reports
// errors.

// minPartBytes is how many bytes of them are worth a part of their own.
const minPartBytes = 1 << 16

// parseConstraintsInParallel reads the lines from at up to the last one if they are constraints, and returns
// where that begins; at if something else is among them.
func (p *parser) parseConstraintsInParallel(at int) int {
	end := strings.LastIndex(p.text, "\nend ") + 1
	if end <= at {
		return at
	}
	parts := splitLines(p.text[at:end], runtime.GOMAXPROCS(0))
	total := 0
	for i := range parts {
		parts[i].first = total
		total += strings.Count(parts[i].text, "\n")
	}
	constraints, notes := make([]event.Constraint, total), make([]string, total)
	var readers sync.WaitGroup
	for i := range parts {
		readers.Add(1)
		go func() {
			defer readers.Done()
			parts[i].parseLines(constraints, notes)
		}()
	}
	readers.Wait()
	for i := range parts {
		if parts[i].irregular {
			return at
		}
	}
	p.file.Schedule.Constraints, p.file.Notes = constraints, notes
	p.line += total
	return end
}

// linesPart is a part of the lines, the first of which has a number.
type linesPart struct {
	text      string
	first     int
	irregular bool
}

// splitLines cuts whole lines into the given number of parts at most.
func splitLines(text string, most int) []linesPart {
	var parts []linesPart
	size := max(minPartBytes, (len(text)+most-1)/most)
	for len(text) > size {
		n := strings.IndexByte(text[size:], '\n')
		if n < 0 {
			break
		}
		parts = append(parts, linesPart{text: text[:size+n+1]})
		text = text[size+n+1:]
	}
	return append(parts, linesPart{text: text})
}

func (x *linesPart) parseLines(constraints []event.Constraint, notes []string) {
	r := regularParser{text: x.text}
	for i := x.first; r.at < len(r.text); i++ {
		c := &constraints[i]
		r.expectLiteral("constraint ")
		r.parsePoint(&c.First)
		r.expectLiteral(" -> ")
		r.parsePoint(&c.Second)
		if notes[i] = r.parseNote(); r.bad {
			x.irregular = true
			return
		}
	}
}

// regularParser reads text that is expected to be as Write writes it.
type regularParser struct {
	text string
	at   int
	bad  bool // it is not
}

func (r *regularParser) expectLiteral(s string) {
	if strings.HasPrefix(r.text[r.at:], s) {
		r.at += len(s)
	} else {
		r.bad = true
	}
}

func (r *regularParser) parsePoint(x *event.Point) {
	x.Thread, x.Done = int(r.parseDecimal(9)), int(r.nextDecimal(9))
	r.expectLiteral(" ")
	x.PC = arch.Addr(r.parseHexadecimal())
	x.Branches, x.Instructions, x.Occurrence = r.nextDecimal(safeDigits), r.nextDecimal(safeDigits), r.nextDecimal(safeDigits)
	x.Spins, x.Span = r.nextDecimal(safeDigits), r.nextDecimal(safeDigits)
	if r.at < len(r.text) && r.text[r.at] == '!' {
		x.Ends = true
		r.at++
	} else if r.at < len(r.text) && r.text[r.at] == '/' {
		r.at++
		x.Accesses = uint8(r.parseDecimal(1))
	}
}

// nextDecimal takes a space and a decimal number.
func (r *regularParser) nextDecimal(most int) uint64 {
	r.expectLiteral(" ")
	return r.parseDecimal(most)
}

// parseDecimal takes a number of at most the given number of digits.
func (r *regularParser) parseDecimal(most int) uint64 {
	n, i := uint64(0), r.at
	for ; i < len(r.text) && r.text[i]-'0' <= 9; i++ {
		n = n*10 + uint64(r.text[i]-'0')
	}
	r.bad = r.bad || i == r.at || i-r.at > most
	r.at = i
	return n
}

func (r *regularParser) parseHexadecimal() uint64 {
	n, i := uint64(0), r.at
	for ; i < len(r.text); i++ {
		d := digitValue(r.text[i])
		if d > 15 {
			break
		}
		n = n<<4 | d
	}
	r.bad = r.bad || i == r.at || i-r.at > safeDigits
	r.at = i
	return n
}

// parseNote takes the rest of the line.
func (r *regularParser) parseNote() string {
	rest := r.text[r.at:]
	end := strings.IndexByte(rest, '\n')
	r.at += end + 1
	switch {
	case end == 0:
		return ""
	case end > 3 && rest[:3] == " # ":
		return rest[3:end]
	}
	r.bad = true
	return ""
}
