package direct

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Flags, as RFLAGS has them.
const (
	carry, parity, auxiliary = 1 << 0, 1 << 2, 1 << 4
	zero, sign, overflow     = 1 << 6, 1 << 7, 1 << 11
)

// undefinedFlags has the flags that instructions leave undefined, at most (SDM volume 1, appendix A,
// and volume 2). Those of other instructions are all defined or unchanged. AF after AND, OR, XOR and
// TEST is undefined, too, and 0 on every processor.
var undefinedFlags = map[string]uint64{
	"div": carry | parity | auxiliary | zero | sign | overflow, "idiv": carry | parity | auxiliary | zero | sign | overflow,
	"mul": parity | auxiliary | zero | sign, "imul": parity | auxiliary | zero | sign,
	"bt": parity | auxiliary | sign | overflow, "bts": parity | auxiliary | sign | overflow,
	"btr": parity | auxiliary | sign | overflow, "btc": parity | auxiliary | sign | overflow,
	"bsf": carry | parity | auxiliary | sign | overflow, "bsr": carry | parity | auxiliary | sign | overflow,
	"rol": overflow, "ror": overflow, "rcl": overflow, "rcr": overflow,
	"shl": carry | auxiliary | overflow, "shr": carry | auxiliary | overflow, "sar": auxiliary | overflow,
	// All of them if the count is greater than the operand.
	"shld": carry | parity | auxiliary | zero | sign | overflow, "shrd": carry | parity | auxiliary | zero | sign | overflow,
	"tzcnt": parity | auxiliary | sign | overflow, "lzcnt": parity | auxiliary | sign | overflow,
	"andn": parity | auxiliary, "blsr": parity | auxiliary, "blsmsk": parity | auxiliary, "blsi": parity | auxiliary,
	"bzhi": parity | auxiliary, "bextr": parity | auxiliary | sign,
}

// TestUndefinedFlags compares the flags that the engine takes for undefined, and so neither keeps nor
// compares with the host's, with the manual's.
func TestUndefinedFlags(t *testing.T) {
	for _, f := range forms(arch.V3) {
		code := append(append(f.head(0, 0, 0, 0), 0xc0|byte(max(f.field, 0))<<3|3), 1, 0, 0, 0, 0, 0, 0, 0)
		in := Inspect(arch.V3, code, oracleCode)
		text, ok := zydis.Decode(code, oracleCode)
		if in.Length == 0 || !ok {
			continue
		}
		name, _, _ := strings.Cut(text.Text, " ")
		if extra := in.Undefined &^ undefinedFlags[name]; extra != 0 {
			t.Errorf("%s (% x): the flags %#x are defined", text.Text, code[:in.Length], extra)
		}
	}
}
