package machine

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// SyncRecord says which synchronization operations are recorded.
type SyncRecord struct {
	// Custom are operations besides those of POSIX and C
	// (syncops.LoadCustom).
	Custom []syncops.Custom
	// Atomics adds atomic instructions and fences that are no part of other
	// operations.
	Atomics bool
	// Heap adds the calls of allocators' functions, malloc and its kin.
	Heap bool
}

// recordSync sets up the recording of synchronization operations, if there is
// to be one.
func (m *Machine) recordSync() ([]recorder.Recording, error) {
	c := m.config.Record.Sync
	if c == nil {
		return m.recognizeControlled()
	}
	with := *c
	with.Custom, with.Atomics = m.customSync(), c.Atomics || m.asksAtAtomics()
	return m.recognizeOperations(m.trace, &with)
}

// customSync lists the custom operations that are controlled or recorded, each once.
func (m *Machine) customSync() []syncops.Custom {
	c := &m.config
	list := slices.Clone(c.CustomSync)
	if c.Record == nil || c.Record.Sync == nil {
		return list
	}
	for _, x := range c.Record.Sync.Custom {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// recognizeOperations sets up the recognition of synchronization operations, for a trace if
// there is one, and for the controller.
func (m *Machine) recognizeOperations(to *trace.Writer, r *SyncRecord) ([]recorder.Recording, error) {
	c := m.state.control
	config := syncops.Config{Custom: r.Custom, Atomics: r.Atomics, Heap: r.Heap, Open: m.openSymbols, Breakpoints: m.breakpoints, SecondThread: m.with.second}
	if c != nil {
		config.Heap, config.Schedules = r.Heap || c.needs.Allocations, c.needs.SchedulePoints
		config.Breakpoints = slices.Concat(m.breakpoints, c.needs.Addresses)
	}
	v, err := m.newSyncRecording(to, config, r.Heap)
	if err != nil {
		return nil, err
	}
	m.state.recording.syncs = v
	if m.asksAtAtomics() {
		m.cpu.GateAtomics()
	}
	if c == nil {
		return []recorder.Recording{v}, nil
	}
	c.recognizer = v.recognizer
	return []recorder.Recording{v, c}, nil
}

// recognizeControlled sets up the recognition of operations that are controlled and not
// recorded.
func (m *Machine) recognizeControlled() ([]recorder.Recording, error) {
	if m.state.control == nil {
		return nil, nil
	}
	return m.recognizeOperations(nil, &SyncRecord{Custom: m.customSync(), Atomics: m.asksAtAtomics()})
}

// watchUnrecorded sets up the recordings and the controller of a run that is not recorded.
func (m *Machine) watchUnrecorded() error {
	if len(m.breakpoints) > 0 {
		m.cpu.SetBreakpoints(m.breakpoints)
	}
	parts, err := m.recognizeControlled()
	if parts = append(m.watching, parts...); err == nil && len(parts) > 0 {
		m.startRecordings(parts)
	}
	return err
}

// recognitionText returns Result.SyncRecognition.
func (r *recording) recognitionText() string {
	if r.syncs == nil {
		return ""
	}
	return r.syncs.recognizer.Recognition()
}

// openSymbols opens a file of symbols where the guest has it.
func (m *Machine) openSymbols(path string) (io.ReadSeekCloser, error) {
	return os.Open(filepath.Join(m.config.RootFS, path))
}
