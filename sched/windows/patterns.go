package windows

import (
	"encoding/binary"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Admission is the input and the state of a window at its begin.
type Admission struct {
	// Key is a hash of all but the content of the input: which connections are made and continued, how many bytes each
	// has, and where the server's threads wait. Exact is a hash of the input.
	Key, Exact uint64
	// Bytes are those of each connection.
	Bytes [][]byte
	// Registers is a hash of where the server's threads wait: the registers that are no hidden state.
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
	// At is the recorded address. It is in the memory that a pointer leads to, Pointers[By], unless By is Fixed.
	At      arch.Addr
	By      int
	Pattern Pattern
}

// Fixed stands for no pointer.
const Fixed = -1

// Pointer is a pointer in hidden state. In another window it may lead elsewhere, as long as different memory of the recorded
// window is different memory there.
type Pointer struct {
	Process int32
	// At is where the pointer is, in memory that Pointers[By] leads to, an earlier one, and Value the recorded one.
	At    arch.Addr
	By    int
	Value uint64
	// Used are the words that were accessed by it, by their recorded addresses divided by 8; none if it is a number that was
	// compared only.
	Used []uint64
	// Not are values that the program has compared it with and that it must not have.
	Not []uint64
	// Compared are earlier pointers that the program has compared it with: they must be equal, or differ, as in the
	// recorded window.
	Compared []int
}

// Precondition says which windows may follow a schedule. The zero value allows none but those with the same input.
type Precondition struct {
	// Patterns are those of the connections.
	Patterns []Pattern
	// Registers is that of Admission, Pointers are in an order in which each is after the one that leads to it, and Hidden is
	// the memory.
	Registers uint64
	Pointers  []Pointer
	Hidden    []HiddenState
	// Joint is conditions on several bytes of hidden state together, or nil.
	Joint *Joint
}

// Joint is conditions on several bytes of hidden state together, such as that one counter is less than another.
type Joint struct {
	Bytes []StateByte
	// Refuses returns the indices of the bytes of a condition that their values do not satisfy; nil: they satisfy all.
	Refuses func(values []byte) []int
	// Lines are the conditions as they are stored.
	Lines []string
}

// StateByte is a byte of hidden state, which Pointers[By] leads to unless By is Fixed. The bytes of a Joint are in
// Precondition.Hidden, too.
type StateByte struct {
	Process int32
	At      arch.Addr
	By      int
}

// refuses returns the bytes of a condition that a window does not satisfy, with the distances to which pointers lead.
func (j *Joint) refuses(a *Admission, moved moves) (list []Obstacle) {
	if j == nil {
		return nil
	}
	values := make([]byte, len(j.Bytes))
	for i, b := range j.Bytes {
		if a.Peek(b.Process, b.At+moved.by(b.By), values[i:i+1]) == 0 {
			return []Obstacle{{b.Process, b.At}}
		}
	}
	for _, i := range j.Refuses(values) {
		list = append(list, Obstacle{j.Bytes[i].Process, j.Bytes[i].At})
	}
	return list
}

// admits reports whether a window may follow the schedule. The condition that has refused one is checked first the next time.
func (p *Precondition) admits(a *Admission) bool {
	if p.Patterns == nil || p.Registers != a.Registers || !admits(p.Patterns, a.Bytes) {
		return false
	}
	moved, _, ok := p.resolve(a)
	if !ok {
		return false
	}
	var b [64]byte
	for i := range p.Hidden {
		s := &p.Hidden[i]
		at := s.At + moved.by(s.By)
		for from := 0; from < len(s.Pattern); from += len(b) {
			part := s.Pattern[from:min(from+len(b), len(s.Pattern))]
			if n := a.Peek(s.Process, at+arch.Addr(from), b[:len(part)]); n < len(part) || !part.allows(b[:n]) {
				p.Hidden[0], p.Hidden[i] = p.Hidden[i], p.Hidden[0]
				return false
			}
		}
	}
	return p.Joint.refuses(a, moved) == nil
}

// moves are the distances by which the memory that pointers lead to is elsewhere than in the recorded window.
type moves []arch.Addr

func (m moves) by(pointer int) arch.Addr {
	if pointer == Fixed {
		return 0
	}
	return m[pointer]
}

// resolve finds where the pointers lead, and reports whether they lead to as many different words as in the recorded window, or
// else at which word they do not.
func (p *Precondition) resolve(a *Admission) (m moves, at Obstacle, ok bool) {
	m = make(moves, len(p.Pointers))
	value, places := make([]uint64, len(p.Pointers)), make([]Obstacle, len(p.Pointers))
	moved := false
	for i := range p.Pointers {
		x := &p.Pointers[i]
		var b [8]byte
		at = Obstacle{x.Process, x.At + m.by(x.By)}
		if places[i] = at; a.Peek(x.Process, at.At, b[:]) < len(b) {
			if x.By != Fixed {
				at = places[x.By] // it leads to no memory
			}
			return nil, at, false
		}
		v := binary.LittleEndian.Uint64(b[:])
		differs := func(n int) bool { return (value[n] == v) != (p.Pointers[n].Value == x.Value) }
		if len(x.Used) > 0 && v%8 != x.Value%8 || slices.Contains(x.Not, v) || slices.ContainsFunc(x.Compared, differs) {
			return nil, at, false
		}
		value[i], m[i] = v, arch.Addr(v-x.Value)
		moved = moved || m[i] != 0
	}
	if moved {
		at, found := p.conflict(m)
		return m, at, !found
	}
	return m, at, true
}

// place is a word of a process.
type place struct {
	process int32
	word    uint64
}

// conflict finds a word that was one in the recorded window and would be two now, or the other way round.
func (p *Precondition) conflict(m moves) (at Obstacle, found bool) {
	to, from := map[place]uint64{}, map[place]uint64{}
	add := func(process int32, word uint64, by arch.Addr) bool {
		old, now := place{process, word}, place{process, word + uint64(int64(by)/8)}
		if have, known := to[old]; known && have != now.word {
			return false
		}
		if have, known := from[now]; known && have != old.word {
			return false
		}
		to[old], from[now] = now.word, old.word
		return true
	}
	for i := range p.Pointers {
		x := &p.Pointers[i]
		for _, w := range x.Used {
			if !add(x.Process, w, m[i]) {
				return Obstacle{x.Process, arch.Addr(8 * w)}, true
			}
		}
	}
	for i := range p.Hidden {
		s := &p.Hidden[i]
		for w := uint64(s.At) / 8; w <= (uint64(s.At)+uint64(len(s.Pattern))-1)/8; w++ {
			if !add(s.Process, w, m.by(s.By)) {
				return Obstacle{s.Process, arch.Addr(8 * w)}, true
			}
		}
	}
	return at, false
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
