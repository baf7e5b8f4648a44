package explore

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
	"github.com/heddle-dmt/heddle/recorder/event"
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
	hits  uint64 // ... and those that were remembered
}

type threadCode struct {
	start, end event.Addr
	index      map[uint64]int // instruction by RIP
	weak       bool           // has non-temporal stores
	touched    []uint64       // by instruction: the slots that it or a later one may access
	loops      bool
}

type threadKey struct {
	thread int8
	regs   emu.Regs
}

// info is a thread before one of its instructions.
type info struct {
	thread int
	regs   emu.Regs
	done   bool
	order  emu.Order
	index  int // of the instruction
	loads  []span
	known  bool // loads is known
	memo   map[string]result
}

// result is the end of an instruction: the thread's next state and the stores.
type result struct {
	next   int32
	stores []memmodel.Entry
}

func (m *Machine) prepare(t *litmus.Test, code []litmus.Code) *program {
	m.makeRoom()
	p := &program{machine: m, test: t, at: map[threadKey]int32{}}
	for i, c := range code {
		tc := threadCode{start: m.load(c.Bytes), index: map[uint64]int{}}
		tc.end = tc.start + event.Addr(c.Starts[len(c.Starts)-1])
		for n, s := range c.Starts {
			tc.index[uint64(tc.start)+uint64(s)] = n
		}
		for _, s := range c.Starts[:len(c.Starts)-1] {
			tc.weak = tc.weak || m.cpu.OrderAt(tc.start+event.Addr(s))&emu.OrderWeak != 0
		}
		tc.touched, tc.loops = touched(t, t.Threads[i].Code)
		p.threads = append(p.threads, tc)
	}
	return p
}

// begin is the state of a thread before its first instruction.
func (p *program) begin(thread int) int32 {
	regs := emu.Regs{RIP: uint64(p.threads[thread].start), RFLAGS: 0x202}
	for _, r := range p.test.Regs {
		if r.Thread == thread {
			regs.GPR[r.Reg] = p.test.Address(r.Value)
		}
	}
	return p.intern(thread, regs)
}

func (p *program) intern(thread int, regs emu.Regs) int32 {
	key := threadKey{int8(thread), regs}
	if id, ok := p.at[key]; ok {
		return id
	}
	id := int32(len(p.infos))
	p.at[key] = id
	code := &p.threads[thread]
	n := info{thread: thread, regs: regs, done: regs.RIP == uint64(code.end), index: code.index[regs.RIP]}
	if !n.done {
		n.order = p.machine.cpu.OrderAt(event.Addr(regs.RIP))
		n.memo = map[string]result{}
	}
	p.infos = append(p.infos, n)
	return id
}

// loads tells which bytes the thread's next instruction reads. That needs one
// execution, on any memory.
func (p *program) loads(id int32, memory []byte) ([]span, error) {
	if p.infos[id].known {
		return p.infos[id].loads, nil
	}
	_, err := p.execute(id, memory)
	return p.infos[id].loads, err
}

// execute runs the thread's next instruction on what the thread sees of memory.
func (p *program) execute(id int32, view []byte) (result, error) {
	n := &p.infos[id]
	var key []byte
	if n.known {
		for _, s := range n.loads {
			key = append(key, view[s.at:s.at+s.size]...)
		}
		if r, ok := n.memo[string(key)]; ok {
			p.hits++
			return r, nil
		}
	}
	p.runs++
	e, fault := p.machine.run(n.regs, view)
	if fault >= 0 {
		line := p.test.Threads[n.thread].Code[n.index].Line
		return result{}, errAccess.New(p.test.File, n.thread, fmt.Sprintf("%#x", fault), line)
	}
	if !n.known {
		n.known, n.loads = true, e.loads
		for _, s := range n.loads {
			key = append(key, view[s.at:s.at+s.size]...)
		}
	}
	r := result{stores: make([]memmodel.Entry, 0, len(e.stores))}
	for _, w := range e.stores {
		r.stores = append(r.stores, memmodel.Entry{
			Addr: uint64(w.at), Size: uint8(w.size), Data: w.data, Weak: n.order&emu.OrderWeak != 0,
		})
	}
	thread := n.thread
	memo := n.memo
	r.next = p.intern(thread, e.regs) // may move infos
	memo[string(key)] = r
	return r, nil
}

// touched gives for each instruction of a thread, and for its end, the slots
// of memory that it or any later instruction may access, as bits; and whether
// the code has loops.
func touched(t *litmus.Test, code []litmus.Instr) (slots []uint64, loops bool) {
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
