package debug

import (
	"bytes"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine/gdbserver"
)

// watch carries out watchpoints. The pages that hold them lose rights while the program runs,
// never while the kernel does: an access that the page would allow is carried out, and checked
// after its instruction.
type watch struct {
	values [][]byte // of the watchpoints, in the order of debugger.points
	hit    int      // index of the watchpoint that was hit
	rights []right  // that pages have without the guard
	lifted bool     // for an instruction
	before position // that instruction
	access int      // index of the watchpoint that it accesses, or -1
}

type right struct {
	page arch.Addr
	perm arch.Perm
}

// deniedRights returns the rights that a watchpoint takes from its pages.
func deniedRights(k gdbserver.PointKind) arch.Perm {
	switch k {
	case gdbserver.WatchWrite:
		return arch.Write
	case gdbserver.WatchRead, gdbserver.WatchAccess:
		return arch.Read | arch.Write
	}
	return 0
}

// guardPages takes rights from the pages with watchpoints that are present.
func (w *watch) guardPages(d *debugger) {
	w.liftGuard(d)
	space := d.task.Process().Space().Space()
	for _, p := range d.points {
		deny := deniedRights(p.Kind)
		if deny == 0 {
			continue
		}
		for page := p.Addr &^ (arch.PageSize - 1); page < p.Addr+arch.Addr(p.Len); page += arch.PageSize {
			e := space.Get(page)
			if !e.Present() || e.Perm()&deny == 0 {
				continue
			}
			w.keepRights(right{page, e.Perm()})
			space.Protect(page, page+arch.PageSize, e.Perm()&^deny)
		}
	}
}

// keepRights keeps the rights that a page had first.
func (w *watch) keepRights(r right) {
	for _, have := range w.rights {
		if have.page == r.page {
			return
		}
	}
	w.rights = append(w.rights, r)
}

// liftGuard gives the pages their rights back.
func (w *watch) liftGuard(d *debugger) {
	for _, r := range w.rights {
		d.task.Process().Space().Space().Protect(r.page, r.page+arch.PageSize, r.perm)
	}
	w.rights = w.rights[:0]
}

// admitAccess lifts the guard for the instruction of a fault. It returns whether the fault is the
// guard's alone.
func (d *debugger) admitAccess(s arch.Stop) bool {
	if len(d.watch.rights) == 0 {
		return false
	}
	w := &d.watch
	d.countInstructions(s)
	need := arch.Write
	if s.Access == arch.AccessRead {
		need = arch.Read
	}
	page, allowed := s.Page&^(arch.PageSize-1), false
	for _, r := range w.rights {
		allowed = allowed || r.page == page && r.perm&need != 0
	}
	if !w.lifted {
		w.access = -1
	}
	if allowed && s.Access != arch.AccessFetch {
		w.access = max(w.access, d.accessedPoint(s))
	}
	w.liftGuard(d)
	w.lifted, w.before = true, d.here()
	d.setHalt()
	return allowed
}

// accessedPoint returns the index of the watchpoint for reads that an access overlaps, or -1.
func (d *debugger) accessedPoint(s arch.Stop) int {
	for i, p := range d.points {
		wants := p.Kind == gdbserver.WatchAccess || p.Kind == gdbserver.WatchRead && s.Access == arch.AccessRead
		if wants && d.accesses(s, p.Addr, p.Addr+arch.Addr(p.Len)) {
			return i
		}
	}
	return -1
}

// accesses reports whether the instruction at the PC, which has faulted, accesses memory between two
// addresses, with the operand that has faulted or another one that it reads.
func (d *debugger) accesses(s arch.Stop, from, end arch.Addr) bool {
	at, named := d.m.CPU().FaultAddr(), false
	for _, o := range d.m.CPU().Operands() {
		faulted := overlaps(o, at, at+1)
		named = named || faulted
		if (faulted || s.Access == arch.AccessRead && !o.Write) && overlaps(o, from, end) {
			return true
		}
	}
	return !named && overlaps(arch.Operand{Addr: at, Size: 8}, from, end)
}

func overlaps(o arch.Operand, from, end arch.Addr) bool {
	return o.Addr < end && from < o.Addr+arch.Addr(o.Size)
}

// checkWatched checks the watchpoints after an instruction for which the guard was lifted, and
// restores the guard.
func (d *debugger) checkWatched() {
	w := &d.watch
	w.lifted = false
	hit := w.hasChanged(d)
	if !hit && w.access >= 0 {
		w.hit, hit = w.access, true
	}
	if hit {
		d.stopOrKeep(foundStop{d.here(), w.before, w.stop(d)})
	}
	if !d.unwinding {
		w.guardPages(d)
	}
}

// readValues reads the values that are watched.
func (w *watch) readValues(d *debugger) {
	w.values = w.values[:0]
	for _, p := range d.points {
		w.values = append(w.values, d.value(p))
	}
}

func (d *debugger) value(p gdbserver.Point) []byte {
	if deniedRights(p.Kind) == 0 {
		return nil
	}
	b := make([]byte, min(p.Len, arch.PageSize))
	return b[:d.Read(p.Addr, b)]
}

// hasChanged reports whether a watched value has changed since the last call.
func (w *watch) hasChanged(d *debugger) bool {
	found := false
	if d.process() == nil {
		return false
	}
	for i, p := range d.points {
		if deniedRights(p.Kind) == 0 {
			continue
		}
		if now := d.value(p); !bytes.Equal(now, w.values[i]) {
			w.values[i] = now
			if p.Kind != gdbserver.WatchRead {
				w.hit, found = i, true
			}
		}
	}
	return found
}

// stop is the stop for the watchpoint that was hit.
func (w *watch) stop(d *debugger) gdbserver.Stop {
	stop := d.stopAt(gdbserver.AtWatch, d.last)
	stop.Point = d.points[w.hit]
	return stop
}
