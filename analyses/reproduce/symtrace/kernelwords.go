package symtrace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// What the kernel keeps of connections is in words of memory that no program has:
// threads share them as they share variables, and the rounds find out which.
const (
	kernelWords   = 0x3000_0000_0000
	kernelObjects = kernelWords + 1<<40 // signals, which are objects and no words
	wordDistance  = 64                  // so that nothing shares a granule
	wordBits      = 64
)

// listening are the words of the socket that is listened on: how many connections
// were made, and how many of them accepted.
const (
	wordConnected = kernelWords
	wordAccepted  = kernelWords + wordDistance
)

// wordSent has how many bytes one side of a connection has sent, and closedBit when it
// sends no more; wordReceived how many of them were received.
func wordSent(connection, side uint64) uint64 {
	return kernelWords + (2+4*connection+2*side)*wordDistance
}

func wordReceived(connection, side uint64) uint64 { return wordSent(connection, side) + wordDistance }

const closedBit = wordBits - 1

// word reads a word, and setWord writes one.
func (w *walker) word(addr uint64) *symbolic.Expr { return w.kernelLoad(addr, granule) }

func (w *walker) setWord(addr uint64, e *symbolic.Expr) { w.kernelStore(addr, e) }

// count adds one to a word, as one, and returns what it was.
func (w *walker) count(addr uint64) *symbolic.Expr {
	p := w.b.pool
	have := w.settled(w.mem.load(p, addr, granule))
	if !w.b.sharing.shared(addr, granule) || have.IsConst() && w.b.sharing.own(w.number, addr, granule) {
		w.touched(addr, granule, false)
		w.setWord(addr, p.Add(have, p.Word(1, wordBits)))
		return have
	}
	w.touched(addr, granule, true)
	w.fence()
	s := w.kernelSymbol(addr, granule)
	if have.IsConst() {
		w.b.seen[s.Name] = have.Value
	}
	value := p.Add(s, p.Word(1, wordBits))
	w.mem.store(addr, value)
	w.add(model.Event{Kind: model.Update, Addr: addr, Size: granule, Symbol: s, Value: value}, false)
	return s
}

// valued goes on with each value that a word may have, the likely one first.
func (w *walker) valued(e *symbolic.Expr, then func(*walker, uint64) error) error {
	if e = w.settled(e); e.IsConst() {
		return then(w, e.Value.Lo)
	}
	var name string
	symbolic.Symbols(e, func(s *symbolic.Expr) { name = s.Name })
	values := w.b.preferred(name, w.b.likelyFirst(name, w.b.values(w, name)))
	if w.b.places[name].addr == wordConnected {
		// Who leaves its path does so for another reason: it is the first one that is free.
		slices.SortStableFunc(values, func(x, y symbolic.Value) int { return w.b.taker(x.Lo) - w.b.taker(y.Lo) })
		values = values[:min(1, len(values))]
	}
	var ways []func(*walker)
	for _, v := range values {
		ways = append(ways, func(w *walker) {
			w.fix(name, v)
			w.late = then(w, w.settled(e).Value.Lo)
		})
	}
	return w.choosesWay(ways)
}

// taker is 1 for a connection that a thread has made, and 0 for others.
func (b *builder) taker(connection uint64) int {
	if b.connected[connection] {
		return 1
	}
	return 0
}

// choosesWay takes one of some ways to go on behind a system call.
func (w *walker) choosesWay(ways []func(*walker)) error {
	if len(ways) == 0 {
		w.starves("what another thread does for it is not known")
		return nil
	}
	w.choose(ways, false)
	return nil
}

// starves ends a path in this round, as what another thread does for it is not known
// yet.
func (w *walker) starves(why string) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("thread %d, instruction %d at %#x: %s", w.ID, w.Instructions, w.pc(), why)
	}
	w.calling, w.starved = false, true
	w.finish(Cut)
}

// blocked ends a path in a call that is not over.
func (w *walker) blocked() bool {
	if _, more := w.path.pc(w.at); more {
		return false
	}
	w.calling = false
	w.finish(Cut)
	return true
}

// direction is what one side of a connection sends.
type direction struct{ connection, side uint64 }

// flow is what was sent in a direction: the bytes, where each piece ends, and whether
// it ends there.
type flow struct {
	bytes  []byte
	ends   []uint64
	closed bool
}

// sent is a piece that a thread sends, or the end.
type sent struct {
	direction
	at    uint64
	bytes []byte
	ends  bool
}

// flows are all that is sent.
type flows map[direction]*flow

// put adds a piece.
func (f flows) put(s *sent) {
	x := f[s.direction]
	if x == nil {
		x = &flow{}
		f[s.direction] = x
	}
	if s.ends {
		x.closed = true
		return
	}
	end := s.at + uint64(len(s.bytes))
	if missing := int(end) - len(x.bytes); missing > 0 {
		x.bytes = append(x.bytes, make([]byte, missing)...)
	}
	copy(x.bytes[s.at:], s.bytes)
	if i, known := slices.BinarySearch(x.ends, end); !known {
		x.ends = slices.Insert(x.ends, i, end)
	}
}

func (f flows) clone() flows {
	c := flows{}
	for d, x := range f {
		c[d] = &flow{slices.Clone(x.bytes), slices.Clone(x.ends), x.closed}
	}
	return c
}

func (f flows) equal(g flows) bool {
	return maps.EqualFunc(f, g, func(a, b *flow) bool {
		return a.closed == b.closed && slices.Equal(a.bytes, b.bytes) && slices.Equal(a.ends, b.ends)
	})
}

// outside is what threads do for each other by system calls: in the round before, and
// up to now in this one.
type outside struct {
	flows       flows
	signals     map[uint64]bool // that were sent to the process
	descriptors map[uint64]descriptor
	lengths     map[uint64]uint64 // of files that are written
}

func newOutside() outside {
	return outside{flows{}, map[uint64]bool{}, map[uint64]descriptor{}, map[uint64]uint64{}}
}

func (o outside) clone() outside {
	return outside{o.flows.clone(), maps.Clone(o.signals), maps.Clone(o.descriptors), maps.Clone(o.lengths)}
}

func (o outside) equal(x outside) bool {
	return o.flows.equal(x.flows) && maps.Equal(o.signals, x.signals) && maps.Equal(o.descriptors, x.descriptors) && maps.Equal(o.lengths, x.lengths)
}

// did collects what all threads have done, without what they took back.
func (b *builder) did() outside {
	all := newOutside()
	all.descriptors = b.descriptors
	for _, w := range b.walkers {
		for i := range w.sent {
			all.flows.put(&w.sent[i])
		}
		for _, s := range w.raised {
			all.signals[s] = true
		}
		for _, l := range w.lengths {
			all.lengths[l.file] = max(all.lengths[l.file], l.to)
		}
	}
	return all
}
