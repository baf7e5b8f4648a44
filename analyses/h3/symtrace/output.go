package symtrace

import (
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/printf"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// compareOutput notes how the text that a call prints can differ from the right output. The format
// is argument number format.
func (w *threadExec) compareOutput(format int) {
	b := w.pass
	if b.options.Output == nil {
		return
	}
	text := w.stringArgument(format)
	r, all, ok := printf.Compile(text)
	if !ok || text == "" {
		return
	}
	found := r.FindSubmatch(b.options.Output)
	if found == nil {
		b.outputDiffers = b.pool.Bool(true)
		return
	}
	for i, p := range all {
		if n := format + 1 + i; n <= len(argumentRegisters) && !p.Text {
			b.outputDiffers = b.pool.Or(b.outputDiffers, w.argumentDiffers(n, p, string(found[i+1])))
		}
	}
}

// argumentDiffers is that an argument is not the number that a text has.
func (w *threadExec) argumentDiffers(n int, p printf.Argument, text string) *symbolic.Expr {
	pool, bits := w.pass.pool, 32
	if p.Wide {
		bits = 64
	}
	value, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), p.Base, 64)
	if err != nil {
		signed, _ := strconv.ParseInt(text, p.Base, 64)
		value = uint64(signed)
	}
	return pool.Not(pool.Eq(pool.Extract(w.callArgument(n), 0, bits), pool.Word(value, bits)))
}
