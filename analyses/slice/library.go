package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
)

// prepareLibraryCall decides, at the end of a library call, which parts of it are in the
// slice.
func (t *threadSlicer) prepareLibraryCall(f *frameState, m *cfg.Model) {
	f.model = m
	if t.mode == Lower || t.mode == TERN {
		f.skip = f.Context != nil && m.Opaque
		return
	}
	wanted := t.registers.intersects(&resultState)
	context := t.callingContext(f)
	switch {
	case m.Result == "fresh":
		t.need(t.registers.kill(registerOffset(rax), 8))
		f.skip = m.Opaque && !m.Copies
	case m.Result == "given": // the kernel's writes put the call into the slice
		t.need(t.registers.kill(registerOffset(rax), 8))
		f.skip = true
	case m.Opaque && len(m.Writes) == 0:
		f.skip = true
	}
	if f.skip {
		return
	}
	f.data = wanted
	if f.Site != nil && context != nil && t.regions.keepsCall(context, f.Site) {
		f.data, f.all = true, true
	}
	if l := t.libraryEffects(f, context); l != nil && l.Writes != alias.Nothing && t.overlappingSets(l.Writes).intersects(t.space.sets) {
		f.data, f.all = true, true
	}
	if f.CallsBack {
		f.data = true
	}
	f.keep = f.data && f.decisionsMatter()
}

// libraryEffects returns the effects of a call; nil: they are unknown.
func (t *threadSlicer) libraryEffects(f *frameState, c *specialize.Context) *alias.LibraryEffects {
	if t.alias == nil || c == nil || f.Site == nil {
		return nil
	}
	return t.alias.LibraryEffects(c, f.Site)
}

// callingContext returns the context that called a library, or nil.
func (t *threadSlicer) callingContext(f *frameState) *specialize.Context {
	if f.Parent < 0 {
		return nil
	}
	return t.Frames[f.Parent].Context
}

// sliceLibraryStep slices a step of a library. In the slice are the data that it computes,
// and the branches that depend on inputs.
func (t *threadSlicer) sliceLibraryStep(s *blocktrace.Step) {
	f := t.frame
	if f.skip || t.mode == Lower || t.mode == TERN {
		if f.keep && t.mode == Lower {
			t.keepAll(s)
		}
		return
	}
	if !f.data && !t.writesLive(s) {
		if f.keep {
			t.keepAll(s)
		}
		return
	}
	if !f.data {
		f.data, f.keep = true, f.decisionsMatter() && f.model.Unknown
	}
	outcome := len(s.Constraints) > 0 && f.keep
	if outcome {
		t.keepAll(s)
	} else if !t.stateWrites(s.Block).intersects(&t.registers.stateBytes) && !t.writesLive(s) {
		return
	}
	t.tempsLive = false
	t.clearTemps(s.Block)
	b := &stepSlicer{threadSlicer: t, step: s, keepOutcome: outcome, library: t.libraryReads(f)}
	b.sliceStatements(0, s.Done)
}

// decisionsMatter reports whether the decisions inside a library's function may matter: not
// those of an opaque function, nor those of an operation, which the schedule determines.
func (f *frameState) decisionsMatter() bool {
	return f.Site != nil && f.model != nil && !f.model.Opaque && len(f.model.Uses) == 0
}

// writesLive reports whether a step writes live memory.
func (t *threadSlicer) writesLive(s *blocktrace.Step) bool {
	if t.space.bytes == 0 {
		return false
	}
	for i, at := range s.Addrs {
		if x := &s.Block.Sites[i]; x.Store && at != blocktrace.NoAddr && t.space.anyLive(at, x.Size) {
			return true
		}
	}
	return false
}

// libraryReads returns the set of the loads of a library call.
func (t *threadSlicer) libraryReads(f *frameState) alias.Set {
	if l := t.libraryEffects(f, t.callingContext(f)); l != nil {
		return l.Reads
	}
	return alias.Nothing
}
