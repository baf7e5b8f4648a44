package heddle

import (
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/syncops"
)

// SyncRecord says which synchronization operations are recorded.
type SyncRecord struct {
	// Custom are operations besides those of POSIX and C
	// (syncops.LoadCustom).
	Custom []syncops.Custom
	// Atomics adds atomic instructions and fences that are no part of other
	// operations.
	Atomics bool
}

// recordSync sets up the recording of synchronization operations, if there is
// to be one.
func (m *Machine) recordSync() ([]recorder.Recording, error) {
	c := m.config.Record.Sync
	if c == nil {
		return nil, nil
	}
	v, err := syncops.NewRecording(m.trace, m.cpu, syncops.Config{Custom: c.Custom, Atomics: c.Atomics, Open: m.openSymbols})
	if err != nil {
		return nil, err
	}
	m.state.recording.syncs = v
	return []recorder.Recording{v}, nil
}

// recognition is what Result.SyncRecognition says.
func (r *recording) recognition() string {
	if r.syncs == nil {
		return ""
	}
	return r.syncs.Recognition()
}

// openSymbols opens a file of symbols where the guest has it.
func (m *Machine) openSymbols(path string) (io.ReadSeekCloser, error) {
	return os.Open(filepath.Join(m.config.RootFS, path))
}
