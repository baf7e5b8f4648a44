package hybrid

import (
	"runtime"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// The lines of constraints come last and are most of a long file. Those that are written
// as Write writes them are read by parts, at the same time; parser.take reads all others,
// and says what is wrong.

// leastPart is how many bytes of them are worth a part of their own.
const leastPart = 1 << 16

// quickly reads the lines from at up to the last one if they are constraints, and returns
// where that begins; at if something else is among them.
func (p *parser) quickly(at int) int {
	end := strings.LastIndex(p.text, "\nend ") + 1
	if end <= at {
		return at
	}
	parts := split(p.text[at:end], runtime.GOMAXPROCS(0))
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
			parts[i].read(constraints, notes)
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

// part is a part of the lines, the first of which has a number.
type part struct {
	text      string
	first     int
	irregular bool
}

// split cuts whole lines into so many parts at most.
func split(text string, most int) []part {
	var parts []part
	size := max(leastPart, (len(text)+most-1)/most)
	for len(text) > size {
		n := strings.IndexByte(text[size:], '\n')
		if n < 0 {
			break
		}
		parts = append(parts, part{text: text[:size+n+1]})
		text = text[size+n+1:]
	}
	return append(parts, part{text: text})
}

func (x *part) read(constraints []event.Constraint, notes []string) {
	r := regular{text: x.text}
	for i := x.first; r.at < len(r.text); i++ {
		c := &constraints[i]
		r.literal("constraint ")
		r.point(&c.First)
		r.literal(" -> ")
		r.point(&c.Second)
		if notes[i] = r.note(); r.bad {
			x.irregular = true
			return
		}
	}
}

// regular reads text that is expected to be as Write writes it.
type regular struct {
	text string
	at   int
	bad  bool // it is not
}

func (r *regular) literal(s string) {
	if strings.HasPrefix(r.text[r.at:], s) {
		r.at += len(s)
	} else {
		r.bad = true
	}
}

func (r *regular) point(x *event.Point) {
	x.Thread, x.Done = int(r.decimal(9)), int(r.next(9))
	r.literal(" ")
	x.PC = event.Addr(r.hexadecimal())
	x.Branches, x.Instructions, x.Occurrence, x.Span = r.next(safeDigits), r.next(safeDigits), r.next(safeDigits), r.next(safeDigits)
	if r.at < len(r.text) && r.text[r.at] == '!' {
		x.Ends = true
		r.at++
	} else if r.at < len(r.text) && r.text[r.at] == '/' {
		r.at++
		x.Accesses = uint8(r.decimal(1))
	}
}

// next takes a space and a decimal number.
func (r *regular) next(most int) uint64 {
	r.literal(" ")
	return r.decimal(most)
}

// decimal takes a number of so many digits at most.
func (r *regular) decimal(most int) uint64 {
	n, i := uint64(0), r.at
	for ; i < len(r.text) && r.text[i]-'0' <= 9; i++ {
		n = n*10 + uint64(r.text[i]-'0')
	}
	r.bad = r.bad || i == r.at || i-r.at > most
	r.at = i
	return n
}

func (r *regular) hexadecimal() uint64 {
	n, i := uint64(0), r.at
	for ; i < len(r.text); i++ {
		d := digit(r.text[i])
		if d > 15 {
			break
		}
		n = n<<4 | d
	}
	r.bad = r.bad || i == r.at || i-r.at > safeDigits
	r.at = i
	return n
}

// note takes the rest of the line.
func (r *regular) note() string {
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
