package h3

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var (
	errProfileMemory = errs.Define("reproduce-profile-without-memory",
		"the trace {file} has no accesses to memory",
		"The run that is to show which memory threads share was recorded by heddle record without --memory.",
		"Record a run that does not fail with heddle record --memory.")
	errProfileOther = errs.Define("reproduce-profile-of-another-program",
		"the trace {file} is one of {found}, and the run that failed is one of {expected}",
		"The memory that threads share is taken from a run of the same program.",
		"Record a run of that program.")
)

// Profile is the memory that the threads of a run shared: two of them have accessed it and one has
// written it.
type Profile struct {
	// File is the trace's; Pages are how many pages are shared, and Pieces how many
	// pieces of eight bytes in them.
	File          string
	Pages, Pieces int
	pieces        map[uint64]bool
}

// loadProfile reads the profile that is asked for.
func (r *Recording) loadProfile(out *Outcome, o *Options) error {
	if o.Profile == "" {
		return nil
	}
	c, err := r.replay.Config()
	if err == nil {
		out.profile, err = readProfile(o.Profile, c.Args)
	}
	return err
}

// describeSharing describes how the shared memory was found.
func (out *Outcome) describeSharing(o *Options) string {
	switch p := out.profile; {
	case len(o.Shared) > 0:
		return "as named: " + strings.Join(o.Shared, ", ")
	case p != nil:
		return fmt.Sprintf("by the profile of %s, whose threads share %d pieces in %d pages; %d pieces that threads conflict on are left out",
			p.File, p.Pieces, p.Pages, out.Trace.Excluded)
	}
	return "by conservative escape"
}

// piece is how many bytes are shared or not as a whole.
const piece = 8

// isShared reports whether any byte of the piece at an address is shared.
func (p *Profile) isShared(addr uint64) bool { return p.pieces[addr/piece] }

// accessors are who has accessed something: the first thread, whether there are others,
// and whether anyone has written.
type accessors struct {
	first        arch.ThreadID
	several      bool
	read, writes bool
}

func (u *accessors) areSharing() bool { return u.several && u.writes }

func (u *accessors) addAccess(m *event.Memory) {
	if !u.read {
		u.first, u.read = m.Thread, true
	}
	u.several = u.several || m.Thread != u.first
	u.writes = u.writes || m.Kind == event.Store
}

// readProfile reads a run of the program that a command line names.
func readProfile(file string, args []string) (*Profile, error) {
	r, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var run struct {
		Args []string `json:"args"`
	}
	text, err := r.Manifest()
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		return nil, err
	}
	if len(run.Args) == 0 || run.Args[0] != args[0] {
		return nil, errProfileOther.New(file, strings.Join(run.Args, " "), args[0])
	}
	if recorded, err := accesses.Are(r); err != nil || !recorded {
		return nil, cmp.Or(err, errProfileMemory.New(file))
	}
	return buildProfile(r, file)
}

// buildProfile finds the pages that threads share, and in those the pieces.
func buildProfile(r *trace.Reader, file string) (*Profile, error) {
	pages, pieces := map[uint64]*accessors{}, map[uint64]*accessors{}
	add := func(all map[uint64]*accessors, at uint64, m *event.Memory) {
		if all[at] == nil {
			all[at] = &accessors{}
		}
		all[at].addAccess(m)
	}
	for m, err := range accesses.Read(context.Background(), file, r, memtrace.Select{}) {
		if err != nil {
			return nil, err
		}
		if m.Kind == event.Load || m.Kind == event.Store {
			add(pages, m.Page, m)
			for at := uint64(m.Addr) / piece; at <= (uint64(m.Addr)+uint64(m.Size)-1)/piece; at++ {
				add(pieces, at, m)
			}
		}
	}
	p := &Profile{File: file, pieces: map[uint64]bool{}}
	for _, u := range pages {
		if u.areSharing() {
			p.Pages++
		}
	}
	for at, u := range pieces {
		if u.areSharing() {
			p.Pieces++
			p.pieces[at] = true
		}
	}
	return p, nil
}
