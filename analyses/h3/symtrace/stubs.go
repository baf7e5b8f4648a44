package symtrace

import (
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/linkage"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// lazyStub is a stub whose function is not looked up where the image is.
type lazyStub struct {
	linkage.Stub
	function uint64 // as a path shows it, or 0
}

// stubName is the name of the calls that stand for stubs.
const stubName = "a function that the dynamic linker looks up"

// lazyStubAt is the stub at an address, or nil.
func (m *Image) lazyStubAt(pc uint64) *lazyStub {
	s, ok := linkage.StubAt(m.peekChanged, pc)
	if !ok {
		return nil
	}
	return &lazyStub{Stub: s}
}

// passStub has a stub, and the search for its function if the path has one, done as one call that
// ends where the function begins. It changes no memory: every thread finds the stub as it is in the
// image.
func (w *threadExec) passStub(pc uint64, s *lazyStub) error {
	c := Call{After: w.sinceCall, Entry: pc, Name: stubName}
	at, searched, err := s.Function(w.pass.image.peekChanged, w.path, w.at)
	if err != nil {
		return err
	}
	function, ok := w.path.PCAt(at)
	if !ok && (searched || s.function == 0) {
		w.noteLastCall(&functionCall{Function: Function{Name: stubName}, Call: c})
		w.endPath(InCall)
		return nil
	}
	if ok {
		s.function = function
	}
	if searched && w.pass.options.WeakMemory { // the linker has an atomic exchange
		w.addEvent(model.Event{Kind: model.Fence}, true)
	}
	c.Return = s.function
	w.Calls = append(w.Calls, c)
	w.sinceCall, w.at = 0, at
	w.machine.State.SetWord(vex.OffsetRIP, s.function)
	return nil
}
