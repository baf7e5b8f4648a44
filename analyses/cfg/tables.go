package cfg

import (
	"encoding/binary"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// isPart tells the parts of a function that compilers put elsewhere.
func isPart(name string) bool {
	return strings.Contains(name, ".cold") || strings.Contains(name, ".part")
}

// longestTable is how many entries of a table are looked at.
const longestTable = 1024

// table is where a jump goes through a table of constant distances from a constant
// place, which is how gcc compiles a switch: as long as what the table says is in
// the function. Whole tells that there is such a table.
func (g *Graph) table(b *Block) (targets []uint64, whole bool) {
	sum, ok := definition(b.Block, b.Block.Next).(*vex.Operation)
	if !ok || len(sum.Args) != 2 || sum.Op.String() != "Add64" {
		return nil, false
	}
	f, named := g.Image.Function(b.Function.Entry)
	if !named || f.Size == 0 {
		return nil, false
	}
	for _, e := range sum.Args {
		base, known := g.constantBefore(b, e)
		if !known {
			continue
		}
		for at := base; len(targets) < longestTable; at += 4 {
			var entry [4]byte
			if n, constant := g.Image.Read(at, entry[:]); n < 4 || !constant {
				break
			}
			to := base + uint64(int64(int32(binary.LittleEndian.Uint32(entry[:]))))
			if to < f.Addr || to >= f.Addr+f.Size {
				break
			}
			targets = append(targets, to)
		}
		if len(targets) > 0 {
			return targets, true
		}
	}
	return nil, false
}

// constantBefore is the value of an expression that is a constant in its block, or a
// register that the same straight line of code sets to one.
func (g *Graph) constantBefore(b *Block, e vex.Expr) (uint64, bool) {
	switch e := definition(b.Block, e).(type) {
	case *vex.Const:
		return e.Bits, true
	case *vex.Get:
		return g.registerBefore(b, e.Offset)
	}
	return 0, false
}

// registerBefore finds the constant that a register of a jump's block has, in the
// blocks of the function that have been lifted: if they set it to one constant only.
func (g *Graph) registerBefore(b *Block, offset int) (uint64, bool) {
	f, _ := g.Image.Function(b.Function.Entry)
	found, value := false, uint64(0)
	for k, v := range g.lifted {
		if v == nil || k.size != longest || k.addr < f.Addr || k.addr >= f.Addr+f.Size {
			continue
		}
		for _, s := range v.Stmts {
			p, ok := s.(*vex.Put)
			if !ok || p.Offset != offset {
				continue
			}
			c, ok := definition(v, p.Data).(*vex.Const)
			if !ok || !g.inTables(c.Bits) {
				continue
			}
			if found && c.Bits != value {
				return 0, false
			}
			found, value = true, c.Bits
		}
	}
	return value, found
}

// inTables tells whether an address is of constant data.
func (g *Graph) inTables(at uint64) bool {
	n, constant := g.Image.Read(at, make([]byte, 4))
	return n == 4 && constant && !g.Image.Owns(at)
}
