package symtrace

import "github.com/heddle-dmt/heddle/analyses/vex"

// aside is memory of which nobody learns what is written.
type aside struct{ *view }

// Load is vex.Memory's.
func (a aside) Load(addr uint64, p []byte) error {
	if !a.read(addr, p) {
		return errUnknown
	}
	return nil
}

// Store is vex.Memory's.
func (a aside) Store(addr uint64, p []byte) error {
	a.write(addr, p)
	return nil
}

// stackAt is the stack pointer of a thread where its path comes to a position. What is
// before that is not followed, but it is executed aside, as functions of the C library
// go other ways for strings that lie otherwise in their cache lines and pages.
func (w *walker) stackAt(end position) uint64 {
	stack := w.own() + ownBlock/2 + w.b.image.Stack%pageSize
	m := w.machine
	m.Memory = aside{w.mem.clone()}
	m.State.SetWord(offsetRSP, stack)
	m.State.SetWord(vex.OffsetRAX+8*8, w.pointer()) // what clone keeps the argument in
	for at := (position{}); at.i < end.i; {
		pc, _ := w.path.pc(at)
		m.State.SetWord(vex.OffsetRIP, pc)
		n, size := w.path.left(at)
		b, err := w.b.lift(pc, n, size)
		if err != nil {
			return stack - 8
		}
		if _, _, err = m.Run(b.Block); err != nil {
			return stack - 8
		}
		at = w.path.after(at, max(1, m.Count))
	}
	return m.State.Word(offsetRSP)
}
