package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
)

// decide finds out, at its end, what of a library's call is in the slice.
func (t *walker) decide(f *frame, m *cfg.Model) {
	f.model = m
	if t.mode == Lower || t.mode == TERN {
		return
	}
	wanted := t.registers.meets(&results)
	context := t.caller(f)
	switch {
	case m.Result == "fresh":
		if t.registers.take(register(rax), 8) {
			f.nearest = place(f.First, 0)
		}
		f.skip = m.Opaque && !m.Copies
	case m.Opaque && len(m.Writes) == 0:
		f.skip = true
	}
	if f.skip {
		return
	}
	f.data = wanted
	if f.Site != nil && context != nil && t.regions.calls(context, f.Site) {
		f.data, f.all = true, true
	}
	if l := t.effects(f, context); l != nil && l.Writes != alias.Nothing && t.clash(l.Writes).meets(t.space.sets) {
		f.data, f.all = true, true
	}
	if f.Back {
		f.data = true
	}
	f.keep = f.data && f.decides()
	if f.data {
		f.nearest = place(max(f.Last-1, f.First), 0)
	}
}

// effects are what a call may do; nil: it is none that is known.
func (t *walker) effects(f *frame, c *simplify.Context) *alias.Called {
	if t.alias == nil || c == nil || f.Site == nil {
		return nil
	}
	return t.alias.Called(c, f.Site)
}

// caller is the context that called a library, or nil.
func (t *walker) caller(f *frame) *simplify.Context {
	if f.Parent < 0 {
		return nil
	}
	return t.Frames[f.Parent].Context
}

// library goes over a step of a library. What of it is in the slice is what data comes
// from, and the branches that depend on inputs.
func (t *walker) library(s *path.Step) {
	f := t.frame
	if f.skip || t.mode == Lower || t.mode == TERN {
		if f.keep && t.mode == Lower {
			t.keepAll(s)
		}
		return
	}
	if !f.data && !t.hits(s) {
		if f.keep {
			t.keepAll(s)
		}
		return
	}
	if !f.data {
		f.data, f.keep = true, f.decides() && f.model.Unknown
		f.nearest = place(s.Index, 0)
	}
	outcome := len(s.Constraints) > 0 && f.keep
	if outcome {
		t.keepAll(s)
	} else if !t.writes(s.Block).meets(&t.registers) && !t.hits(s) {
		return
	}
	t.busy = false
	t.fresh(s.Block)
	b := &backward{walker: t, step: s, outcome: outcome, library: t.reads(f)}
	b.run(0, s.Done)
}

// decides tells whether what a library's function decides may matter: not what is
// opaque, nor how an operation does what it is known for.
func (f *frame) decides() bool {
	return f.Site != nil && f.model != nil && !f.model.Opaque && len(f.model.Uses) == 0
}

// hits tells whether a step writes what is live.
func (t *walker) hits(s *path.Step) bool {
	if t.space.bytes == 0 {
		return false
	}
	for i, at := range s.Addrs {
		if x := &s.Block.Sites[i]; x.Store && at != path.NoAddr && t.space.any(at, x.Size) {
			return true
		}
	}
	return false
}

// reads is the set that loads of a library's call have.
func (t *walker) reads(f *frame) alias.Set {
	if l := t.effects(f, t.caller(f)); l != nil {
		return l.Reads
	}
	return alias.Nothing
}
