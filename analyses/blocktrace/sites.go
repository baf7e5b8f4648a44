package blocktrace

import "github.com/heddle-dmt/heddle/analyses/vex"

// Block is the lifted form of code that was executed.
type Block struct {
	*vex.Block
	// Number is the block's index in Trace.Blocks.
	Number int
	Code   []byte
	// Instructions is the number of its instructions.
	Instructions int
	// Sites are its loads and stores, in order.
	Sites []Site
}

// Site is a load or a store of a block.
type Site struct {
	// Stmt is the index of the statement: an Assign of a Load, a LoadG, a Store, a CAS or a
	// Dirty.
	Stmt  int
	Store bool
	// Size is in bytes.
	Size int

	addr, guard vex.Expr
	value       vex.Expr // the value to store; nil: not known
	temp        vex.Temp // the temporary that receives the loaded value
	cas         *vex.CAS // for a store that happens only if this exchange succeeds
	offset      uint64   // added to the address
}

// newBlock finds the sites of a block.
func newBlock(b *vex.Block, number int, code []byte) *Block {
	out := &Block{Block: b, Number: number, Code: code}
	for i, step := range b.Flat().Steps {
		switch step.Kind {
		case vex.StepMark:
			if step.Size > 0 {
				out.Instructions++
			}
		case vex.StepLoad, vex.StepStore, vex.StepOther:
			for _, site := range sitesOfStatement(b, b.Stmts[i]) {
				site.Stmt = i
				out.Sites = append(out.Sites, site)
			}
		}
	}
	return out
}

// sitesOfStatement returns the loads and stores of a statement.
func sitesOfStatement(b *vex.Block, s vex.Stmt) []Site {
	switch s := s.(type) {
	case *vex.Assign:
		if l, ok := s.Data.(*vex.Load); ok {
			return []Site{{Size: l.Type.Bytes(), addr: l.Addr, temp: s.Temp}}
		}
	case *vex.LoadG:
		return []Site{{Size: s.Cvt.Type().Bytes(), addr: s.Addr, guard: s.Guard, temp: s.Temp}}
	case *vex.Store:
		return []Site{{Store: true, Size: b.TypeOf(s.Data).Bytes(), addr: s.Addr, guard: s.Guard, value: s.Data, temp: vex.NoTemp}}
	case *vex.CAS:
		return sitesOfCAS(b, s)
	case *vex.Dirty:
		return sitesOfDirty(s)
	}
	return nil
}

func sitesOfCAS(b *vex.Block, s *vex.CAS) []Site {
	n := b.Types[s.OldLo].Bytes()
	sites := []Site{{Size: n, addr: s.Addr, temp: s.OldLo}}
	if s.DataHi != nil {
		sites = append(sites, Site{Size: n, addr: s.Addr, temp: s.OldHi, offset: uint64(n)})
	}
	sites = append(sites, Site{Store: true, Size: n, addr: s.Addr, value: s.DataLo, temp: vex.NoTemp, cas: s})
	if s.DataHi != nil {
		sites = append(sites, Site{Store: true, Size: n, addr: s.Addr, value: s.DataHi, temp: vex.NoTemp, cas: s, offset: uint64(n)})
	}
	return sites
}

func sitesOfDirty(s *vex.Dirty) []Site {
	site := Site{Size: s.MemSize, addr: s.MemAddr, guard: s.Guard, temp: vex.NoTemp}
	var sites []Site
	if s.Effect.Reads() {
		sites = append(sites, site)
	}
	if s.Effect.Writes() {
		site.Store = true
		sites = append(sites, site)
	}
	return sites
}

// operandValue returns the value of a temporary or a constant in the block that a machine
// executed last.
func operandValue(m *vex.Machine, e vex.Expr) uint64 {
	switch e := e.(type) {
	case *vex.Read:
		return m.Temp(e.Temp).Lo
	case *vex.Const:
		return e.Bits
	}
	return 0
}

// accessedAddr returns the address that a site accessed, or NoAddr.
func (s *Site) accessedAddr(m *vex.Machine) uint64 {
	if s.guard != nil && operandValue(m, s.guard) == 0 || s.cas != nil && !exchangeSucceeded(m, s.cas) {
		return NoAddr
	}
	return operandValue(m, s.addr) + s.offset
}

// accessedValue returns the lower 8 bytes of the value that a site loaded or stored.
func (s *Site) accessedValue(m *vex.Machine) uint64 {
	switch {
	case s.value != nil:
		return operandValue(m, s.value)
	case s.temp != vex.NoTemp:
		return m.Temp(s.temp).Lo
	}
	return 0
}

// exchangeSucceeded reports whether a compare-and-exchange succeeded.
func exchangeSucceeded(m *vex.Machine, s *vex.CAS) bool {
	return m.Temp(s.OldLo).Lo == operandValue(m, s.ExpectedLo) &&
		(s.ExpectedHi == nil || m.Temp(s.OldHi).Lo == operandValue(m, s.ExpectedHi))
}
