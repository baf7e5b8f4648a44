package explore

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// program is a test loaded into the machine, with all that was found out about
// its instructions.
type program struct {
	machine *Machine
	test    *litmus.Test
	threads []threadCode
	// at finds the thread states that were met; infos are they.
	at    map[threadKey]int32
	infos []info
	runs  uint64 // instructions that the engine executed
	hits  uint64 // and how many of them were remembered
}

type threadCode struct {
	start, end arch.Addr
	index      map[uint64]int // instruction by RIP
	weak       bool           // has non-temporal stores
	touched    []uint64       // by instruction: the slots that it or a later one may access
	loops      bool
}

type threadKey struct {
	thread int8
	regs   arch.Regs
	loaded string
}

// info is a thread before one of its instructions, or between two loads of one.
type info struct {
	thread int
	regs   arch.Regs // before the instruction
	done   bool
	order  emu.Order
	index  int    // of the instruction
	first  int    // how many loads of the instruction are done
	loaded string // their bytes
	*findings
}

// findings are the facts found out about an instruction in one state of the registers.
type findings struct {
	known bool // loads is known
	// loads are in the order in which they are done. Unless the instruction is atomic
	// each lies in one cache line.
	loads []span
	memo  map[string]result // by the bytes that the loads read
}

// isAtomic reports whether all accesses of the instruction are one step.
func (n *info) isAtomic() bool { return n.order&emu.OrderLocked != 0 }

// nextLoads are the loads of the thread's next step: all of an atomic instruction,
// otherwise one, if there is one.
func (n *info) nextLoads() []span {
	if n.isAtomic() || n.first == len(n.loads) {
		return n.loads[n.first:]
	}
	return n.loads[n.first : n.first+1]
}

// isLastStep reports whether the thread's next step executes the instruction, after its last
// load; otherwise it is a load alone.
func (n *info) isLastStep() bool { return n.first+len(n.nextLoads()) == len(n.loads) }

// loadedBytes returns the bytes that all loads of the instruction read: those of the loads that are
// done, and the view's for the others.
func (n *info) loadedBytes(view []byte) []byte {
	bytes := []byte(n.loaded)
	for _, l := range n.loads[n.first:] {
		bytes = append(bytes, view[l.at:l.at+l.size]...)
	}
	return bytes
}

// layLoaded is the view with the bytes that were loaded already where they were loaded from.
func (n *info) layLoaded(view []byte) []byte {
	if n.first == 0 {
		return view
	}
	laid := slices.Clone(view)
	bytes := n.loaded
	for _, l := range n.loads[:n.first] {
		bytes = bytes[copy(laid[l.at:l.at+l.size], bytes):]
	}
	return laid
}

// result is the end of an instruction: the thread's next state and the stores.
type result struct {
	next   int32
	stores []memmodel.Entry
}

func (m *Machine) prepareTest(t *litmus.Test, code []litmus.Code) *program {
	m.makeRoom()
	p := &program{machine: m, test: t, at: map[threadKey]int32{}}
	for i, c := range code {
		tc := threadCode{start: m.loadCode(c.Bytes), index: map[uint64]int{}}
		tc.end = tc.start + arch.Addr(c.Starts[len(c.Starts)-1])
		for n, s := range c.Starts {
			tc.index[uint64(tc.start)+uint64(s)] = n
		}
		for _, s := range c.Starts[:len(c.Starts)-1] {
			tc.weak = tc.weak || m.cpu.OrderAt(tc.start+arch.Addr(s))&emu.OrderWeak != 0
		}
		tc.touched, tc.loops = touchedSlots(t, t.Threads[i].Code)
		p.threads = append(p.threads, tc)
	}
	return p
}

// firstState is the state of a thread before its first instruction.
func (p *program) firstState(thread int) int32 {
	regs := arch.Regs{RIP: uint64(p.threads[thread].start), RFLAGS: 0x202}
	for _, r := range p.test.Regs {
		if r.Thread == thread {
			regs.GPR[r.Reg] = p.test.Address(r.Value)
		}
	}
	return p.internState(thread, regs)
}

// internState returns the number of a thread's state before an instruction.
func (p *program) internState(thread int, regs arch.Regs) int32 {
	key := threadKey{thread: int8(thread), regs: regs}
	if id, ok := p.at[key]; ok {
		return id
	}
	id := int32(len(p.infos))
	p.at[key] = id
	code := &p.threads[thread]
	n := info{thread: thread, regs: regs, done: regs.RIP == uint64(code.end), index: code.index[regs.RIP]}
	if !n.done {
		n.order = p.machine.cpu.OrderAt(arch.Addr(regs.RIP))
		n.findings = &findings{memo: map[string]result{}}
	}
	p.infos = append(p.infos, n)
	return id
}

// learnLoads finds out which bytes the thread's instruction reads. That needs one
// execution, on any memory.
func (p *program) learnLoads(id int32, memory []byte) error {
	if p.infos[id].known {
		return nil
	}
	_, err := p.executeInstr(id, memory)
	return err
}

// loadNext returns the number of the thread's state after its next load, which is not the last
// of its instruction.
func (p *program) loadNext(id int32, view []byte) int32 {
	n := p.infos[id]
	l := n.loads[n.first]
	n.loaded += string(view[l.at : l.at+l.size])
	n.first++
	key := threadKey{int8(n.thread), n.regs, n.loaded}
	if next, ok := p.at[key]; ok {
		return next
	}
	next := int32(len(p.infos))
	p.at[key] = next
	p.infos = append(p.infos, n)
	return next
}

// executeInstr runs the thread's instruction on its view of memory and the bytes that it has
// loaded already.
func (p *program) executeInstr(id int32, view []byte) (result, error) {
	n := p.infos[id]
	if n.known {
		if r, ok := n.memo[string(n.loadedBytes(view))]; ok {
			p.hits++
			return r, nil
		}
	}
	p.runs++
	e, fault := p.machine.executeAt(n.regs, n.layLoaded(view))
	if fault >= 0 {
		line := p.test.Threads[n.thread].Code[n.index].Line
		return result{}, errAccess.New(p.test.File, n.thread, fmt.Sprintf("%#x", fault), line)
	}
	if !n.known {
		n.known = true
		for _, l := range e.loads {
			n.loads = append(n.loads, l.visiblePieces(n.isAtomic())...)
		}
	}
	r := result{next: p.internState(n.thread, e.regs), stores: make([]memmodel.Entry, 0, len(e.stores))}
	for _, w := range e.stores {
		for _, s := range w.visiblePieces(n.isAtomic()) {
			entry := memmodel.Entry{Addr: uint64(s.at), Size: uint8(s.size), Weak: n.order&emu.OrderWeak != 0}
			copy(entry.Data[:s.size], w.data[s.at-w.at:])
			r.stores = append(r.stores, entry)
		}
	}
	n.memo[string(n.loadedBytes(view))] = r
	return r, nil
}

// visiblePieces are the accesses that other cores see in place of one: its parts in each cache line,
// or itself if the instruction is atomic.
func (s span) visiblePieces(atomic bool) []span {
	if atomic {
		return []span{s}
	}
	var all []span
	for at, size := range litmus.Pieces(s.at, s.size) {
		all = append(all, span{at, size})
	}
	return all
}

// touchedSlots gives for each instruction of a thread, and for its end, the slots
// of memory that it or any later instruction may access, as bits; and whether
// the code has loops.
func touchedSlots(t *litmus.Test, code []litmus.Instr) (slots []uint64, loops bool) {
	slots = make([]uint64, len(code)+1)
	for i := len(code) - 1; i >= 0; i-- {
		slots[i] = slots[i+1] | slotsOf(t, code[i].Dst) | slotsOf(t, code[i].Src)
		loops = loops || code[i].Target <= i
	}
	if loops {
		for i := range code {
			slots[i] = slots[0]
		}
	}
	return slots, loops
}

// slotsOf is the slot of an operand in memory; all of them when its address is
// in a register.
func slotsOf(t *litmus.Test, o litmus.Operand) uint64 {
	if o.Kind != litmus.MemOperand {
		return 0
	}
	if o.Reg != litmus.NoReg || o.Index != litmus.NoReg {
		return ^uint64(0)
	}
	at := uint64(t.Number(o)) - litmus.DataBase
	return spanSlots(at, 8)
}

func spanSlots(at, size uint64) uint64 {
	var bits uint64
	for slot := at / litmus.SlotSize; slot <= (at+size-1)/litmus.SlotSize && slot < 64; slot++ {
		bits |= 1 << slot
	}
	return bits
}
