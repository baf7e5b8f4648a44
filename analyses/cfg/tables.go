package cfg

import (
	"encoding/binary"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/vex"
)

// isFunctionPart reports whether a symbol is a part of a function that the compiler placed
// elsewhere.
func isFunctionPart(name string) bool {
	return strings.Contains(name, ".cold") || strings.Contains(name, ".part")
}

// maxTableEntries is the number of entries of a table that are read.
const maxTableEntries = 1024

// jumpTable returns the targets of a jump through a table of constant offsets from a
// constant base, which is how gcc compiles a switch. The table ends at the first entry that
// is not in the function. Whole is set if there is such a table.
func (g *Graph) jumpTable(b *Block) (targets []uint64, whole bool) {
	sum, ok := findDefinition(b.Block, b.Block.Next).(*vex.Operation)
	if !ok || len(sum.Args) != 2 || sum.Op.String() != "Add64" {
		return nil, false
	}
	f, named := g.Image.Function(b.Function.Entry)
	if !named || f.Size == 0 {
		return nil, false
	}
	for _, e := range sum.Args {
		base, known := g.constantAtJump(b, e)
		if !known {
			continue
		}
		for at := base; len(targets) < maxTableEntries; at += 4 {
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

// constantAtJump returns the value of an expression that is a constant in its block, or a
// register that the function sets to one constant only.
func (g *Graph) constantAtJump(b *Block, e vex.Expr) (uint64, bool) {
	switch e := findDefinition(b.Block, e).(type) {
	case *vex.Const:
		return e.Bits, true
	case *vex.Get:
		return g.registerConstant(b, e.Offset)
	}
	return 0, false
}

// registerConstant finds the constant that a register holds at a jump: the one address of
// constant data that the lifted blocks of the function assign to it.
func (g *Graph) registerConstant(b *Block, offset int) (uint64, bool) {
	f, _ := g.Image.Function(b.Function.Entry)
	found, value := false, uint64(0)
	for k, v := range g.lifted {
		if v == nil || k.size != maxLiftBytes || k.addr < f.Addr || k.addr >= f.Addr+f.Size {
			continue
		}
		for _, s := range v.Stmts {
			p, ok := s.(*vex.Put)
			if !ok || p.Offset != offset {
				continue
			}
			c, ok := findDefinition(v, p.Data).(*vex.Const)
			if !ok || !g.isConstantData(c.Bits) {
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

// isConstantData reports whether an address is in constant data.
func (g *Graph) isConstantData(at uint64) bool {
	n, constant := g.Image.Read(at, make([]byte, 4))
	return n == 4 && constant && !g.Image.OwnsCode(at)
}
