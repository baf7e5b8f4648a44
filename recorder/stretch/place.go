// Package stretch records a part of a run: from a place of the run to another.
//
// Place names a place and Spec a stretch. Bounds finds the places in a run; it has no effect on the run. Past keeps
// those events before the stretch that still have an effect when it begins.
//
// Invariants:
//
//  1. The run with Bounds is the run without, bit for bit.
//  2. Places are counted from the start of the run: a place is the same one in every recording of the run.
package stretch

import (
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Kind is how a place is named.
type Kind uint8

const (
	// Unset is the start of the run, or its end.
	Unset Kind = iota
	// Instruction is before the instruction that follows N retired ones: of the thread, or of all threads.
	Instruction
	// Time is the first time that a thread is about to run at N cycles of virtual time or later.
	Time
	// Function is before the first instruction of the N-th call of a function.
	Function
	// Connection is the return of the N-th accept of a connection to the port, or to any port.
	Connection
	// Request is the return of the read that begins the N-th request: the first one on a connection, or the first one
	// after the server has written to it.
	Request
)

var kindNames = [...]string{"", "instruction", "time", "function", "connection", "request"}

// Place names a place of a run.
type Place struct {
	Kind Kind
	N    uint64
	// Thread is that of Instruction; 0: all threads. Port is that of Connection and Request; 0: all ports.
	Thread arch.ThreadID
	Port   uint16
	// Function is the name of a function, as in region.Spec.
	Function string
}

// Spec names a stretch.
type Spec struct {
	From Place `json:"from"`
	To   Place `json:"to"`
}

// IsWhole reports that the stretch is the whole run.
func (s Spec) IsWhole() bool { return s.From.Kind == Unset && s.To.Kind == Unset }

// Forms describes the texts that Parse takes.
const Forms = "instruction:N, instruction:THREAD:N, time:CYCLES, function:NAME:N, connection:N, connection:PORT:N, request:N, request:PORT:N"

// Parse reads the text of a place; false: it is in none of the Forms.
func Parse(text string) (Place, bool) {
	name, rest, _ := strings.Cut(text, ":")
	p := Place{}
	for k, have := range kindNames {
		if have == name && k > 0 {
			p.Kind = Kind(k)
		}
	}
	middle, last := "", rest
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		middle, last = rest[:i], rest[i+1:]
	}
	n, err := strconv.ParseUint(last, 10, 63)
	p.N = n
	if err != nil || n == 0 && p.Kind != Time && p.Kind != Instruction {
		return Place{}, false
	}
	switch p.Kind {
	case Instruction:
		if middle == "" {
			return p, last == rest
		}
		id, err := strconv.ParseUint(middle, 10, 31)
		p.Thread = arch.ThreadID(id)
		return p, err == nil && id > 0
	case Time:
		return p, last == rest
	case Function:
		p.Function = middle
		return p, middle != ""
	case Connection, Request:
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
	case p.Kind == Unset:
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
	parsed, ok := Parse(string(text))
	if !ok {
		return errPlace.New(string(text), Forms)
	}
	*p = parsed
	return nil
}
