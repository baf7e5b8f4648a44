package explore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// stateVersion is the version of the format of states, which changes with it and with the events of
// executions.
const stateVersion = 1

// storedState is an exploration between two executions.
type storedState struct {
	Version int
	// Of identifies the program with its arguments, files and flags.
	Of     string
	Done   bool
	Report Report
	Notes  []bool
	Shared []uint64
	Points map[arch.Addr]accessKind
	// Pages are the pages that threads use, by the thread, or 0 if several do.
	Pages    map[uint64]arch.ThreadID
	Explorer *dpor.State
}

// identity identifies what is explored.
func (x *exploration) identity() string {
	c := x.newConfig()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %v %d %d %v %q %q", x.base.Digest(), x.options.Model, c.Cores, c.Seed, c.CPU, c.Args, c.Env))
	return hex.EncodeToString(sum[:])
}

// load continues from the file of the state, if there is one. It reports whether the exploration was
// complete.
func (x *exploration) load() (done bool, err error) {
	if x.options.State == "" {
		return false, nil
	}
	text, err := os.ReadFile(x.options.State)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, errState.Wrap(err, x.options.State)
	}
	var s storedState
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return false, errState.Wrap(err, x.options.State)
	}
	if s.Version != stateVersion || s.Of != x.identity() || s.Explorer == nil || len(s.Notes) != 2 {
		return false, errState.New(x.options.State)
	}
	own := x.report
	x.report = s.Report
	x.report.Model, x.report.Accepted, x.report.Explored = own.Model, own.Accepted, own.Explored
	x.runner.notes = notes{s.Notes[0], s.Notes[1]}
	x.report.notes = x.runner.notes
	for i, o := range x.report.Outputs {
		x.outputs[o.Sum] = i
	}
	for _, n := range s.Shared {
		x.sharing.shared[n] = true
	}
	maps.Copy(x.sharing.points, s.Points)
	x.sharing.version++
	for n, owner := range s.Pages {
		x.sharing.pages[n] = &usedPage{owner: owner, several: owner == 0}
	}
	x.explore(dpor.Continue(s.Explorer))
	return s.Done, nil
}

// save writes the state to its file, if one is named: after stateInterval, or now.
func (x *exploration) save(done, now bool) error {
	if x.options.State == "" || !now && time.Since(x.saved) < stateInterval {
		return nil
	}
	s := storedState{
		Version: stateVersion, Of: x.identity(), Done: done, Report: x.report,
		Notes:  []bool{x.report.notes.readsTime, x.report.notes.unmaps},
		Shared: slices.Sorted(maps.Keys(x.sharing.shared)), Points: x.sharing.points,
		Pages: map[uint64]arch.ThreadID{}, Explorer: x.all.State(),
	}
	for n, p := range x.sharing.pages {
		s.Pages[n] = p.owner
		if p.several {
			s.Pages[n] = 0
		}
	}
	text, err := json.Marshal(&s)
	if err == nil {
		err = outfile.WriteBytes(x.options.State, text)
	}
	if err != nil {
		return errStateFile.Wrap(err, x.options.State)
	}
	x.saved = time.Now()
	return nil
}
