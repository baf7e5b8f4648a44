package windows

import "github.com/heddle-dmt/heddle/emu/arch"

// Admission is what a window is given at its begin.
type Admission struct {
	// Key is a hash of all but the content of the input: which connections are made and continued, how many bytes each
	// has, and where the server's threads wait. Exact is a hash of the input.
	Key, Exact uint64
	// Bytes are those of each connection.
	Bytes [][]byte
	// Registers is a hash of the registers that functions keep, of all the server's threads.
	Registers uint64
	// Peek reads memory of a process of the server, and returns how many bytes it has.
	Peek func(process int32, at arch.Addr, b []byte) int
}

// Values is a set of values of a byte: bit v%64 of word v/64 is value v.
type Values [4]uint64

// Has reports whether a value is in the set.
func (s *Values) Has(v byte) bool { return s[v/64]>>(v%64)&1 != 0 }

// Pattern is the precondition of a schedule on the bytes of a connection: the values that each may have.
type Pattern []Values

// HiddenState is the precondition of a schedule on memory that a window finds: hidden state (TERN, section 6).
type HiddenState struct {
	Process int32
	At      arch.Addr
	Pattern Pattern
}

// Precondition says which windows may follow a schedule. The zero value allows none but those with the same input.
type Precondition struct {
	// Patterns are those of the connections.
	Patterns []Pattern
	// Registers is that of Admission, and Hidden the memory.
	Registers uint64
	Hidden    []HiddenState
}

// admits reports whether a window may follow the schedule. What has refused a window is looked at first the next time.
func (p *Precondition) admits(a *Admission) bool {
	if p.Patterns == nil || p.Registers != a.Registers || !admits(p.Patterns, a.Bytes) {
		return false
	}
	var b [64]byte
	for i := range p.Hidden {
		s := &p.Hidden[i]
		for from := 0; from < len(s.Pattern); from += len(b) {
			part := s.Pattern[from:min(from+len(b), len(s.Pattern))]
			if n := a.Peek(s.Process, s.At+arch.Addr(from), b[:len(part)]); n < len(part) || !part.allows(b[:n]) {
				p.Hidden[0], p.Hidden[i] = p.Hidden[i], p.Hidden[0]
				return false
			}
		}
	}
	return true
}

// allows reports whether bytes, as many as the pattern has, are in their sets.
func (p Pattern) allows(b []byte) bool {
	for at, v := range b {
		if !p[at].Has(v) {
			return false
		}
	}
	return true
}

// admits reports whether all connections have bytes that the patterns allow.
func admits(patterns []Pattern, bytes [][]byte) bool {
	if len(patterns) != len(bytes) {
		return false
	}
	for i, p := range patterns {
		if len(p) != len(bytes[i]) || !p.allows(bytes[i]) {
			return false
		}
	}
	return true
}

// Reuse is how windows use stored schedules.
type Reuse string

const (
	// Online windows follow stored schedules, and new ones are stored.
	Online Reuse = "online"
	// Shadow windows are in order of arrival; schedules that they could have followed are counted.
	Shadow Reuse = "shadow"
	// Off: stored schedules are not looked for.
	Off Reuse = "off"
)
