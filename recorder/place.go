package recorder

import (
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// PlaceKind is how a place is named.
type PlaceKind uint8

const (
	// NoPlace is the start of the run, or its end.
	NoPlace PlaceKind = iota
	// AtInstruction is before the instruction that follows N retired ones: of the thread, or of all threads.
	AtInstruction
	// AtTime is the first time that a thread is about to run at N cycles of virtual time or later.
	AtTime
	// AtCall is before the first instruction of the N-th call of a function.
	AtCall
	// AtConnection is the return of the N-th accept of a connection to the port, or to any port.
	AtConnection
	// AtRequest is the return of the read that begins the N-th request: the first one on a connection, or the first one
	// after the server has written to it.
	AtRequest
)

var kindNames = [...]string{"", "instruction", "time", "function", "connection", "request"}

// Place names a place of a run.
type Place struct {
	Kind PlaceKind
	N    uint64
	// Thread is that of AtInstruction; 0: all threads. Port is that of AtConnection and AtRequest; 0: all ports.
	Thread arch.ThreadID
	Port   uint16
	// Function is the name of a function, as in region.Spec.
	Function string
}

// Stretch names a part of a run: from a place to another.
type Stretch struct {
	From Place `json:"from"`
	To   Place `json:"to"`
}

// IsWhole reports that the stretch is the whole run.
func (s Stretch) IsWhole() bool { return s.From.Kind == NoPlace && s.To.Kind == NoPlace }

// PlaceForms describes the texts that ParsePlace takes.
const PlaceForms = "instruction:N, instruction:THREAD:N, time:CYCLES, function:NAME:N, connection:N, connection:PORT:N, request:N, request:PORT:N"

// ParsePlace reads the text of a place; false: it is in none of the PlaceForms.
func ParsePlace(text string) (Place, bool) {
	name, rest, _ := strings.Cut(text, ":")
	p := Place{}
	for k, have := range kindNames {
		if have == name && k > 0 {
			p.Kind = PlaceKind(k)
		}
	}
	middle, last := "", rest
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		middle, last = rest[:i], rest[i+1:]
	}
	n, err := strconv.ParseUint(last, 10, 63)
	p.N = n
	if err != nil || n == 0 && p.Kind != AtTime && p.Kind != AtInstruction {
		return Place{}, false
	}
	switch p.Kind {
	case AtInstruction:
		if middle == "" {
			return p, last == rest
		}
		id, err := strconv.ParseUint(middle, 10, 31)
		p.Thread = arch.ThreadID(id)
		return p, err == nil && id > 0
	case AtTime:
		return p, last == rest
	case AtCall:
		p.Function = middle
		return p, middle != ""
	case AtConnection, AtRequest:
		if middle == "" {
			return p, last == rest
		}
		port, err := strconv.ParseUint(middle, 10, 16)
		p.Port = uint16(port)
		return p, err == nil && port > 0
	}
	return Place{}, false
}

// String is the text of a place, empty for the start or the end of the run.
func (p Place) String() string {
	n := strconv.FormatUint(p.N, 10)
	middle := ""
	switch {
	case p.Kind == NoPlace:
		return ""
	case p.Thread != 0:
		middle = strconv.Itoa(int(p.Thread)) + ":"
	case p.Port != 0:
		middle = strconv.Itoa(int(p.Port)) + ":"
	case p.Function != "":
		middle = p.Function + ":"
	}
	return kindNames[p.Kind] + ":" + middle + n
}

// MarshalText implements encoding.TextMarshaler.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Place) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Place{}
		return nil
	}
	parsed, ok := ParsePlace(string(text))
	if !ok {
		return errPlace.New(string(text), PlaceForms)
	}
	*p = parsed
	return nil
}
