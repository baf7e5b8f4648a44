package machine

import (
	"io"
	"os"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine/delays"
	"github.com/heddle-dmt/heddle/internal/machine/inputfiles"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/replay"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

var errManifest = errs.Define("manifest-cannot-be-written",
	"the description of the run cannot be written to the trace",
	"A part of the configuration has no text form; the rest of the sentence says which.",
	"Report the sentence: this is a defect of heddle.")

var errRecording = errs.Define("recording-cannot-begin",
	"the machine cannot be set up to record",
	"The engine does not log what is to be recorded; the rest of the sentence is its own.",
	"Report the sentence, and record less until it is mended.")

// Record says which events of a run are recorded, and where. In any case the trace has the
// starts and ends of threads, context switches, system calls and signals, and the decisions and
// inputs that repeat the run (OpenReplay). No digest depends on it.
type Record struct {
	// To receives the trace (package trace). If it is an *os.File, a full disk
	// leaves no part of a chunk in the file. It is not closed.
	To io.Writer `json:"-"`
	// Listener, when set, takes the events in place of To. If it is a memtrace.Listener, it gets the
	// engine's log of memory.
	Listener trace.Listener `json:"-"`
	// Sync, when set, records synchronization operations.
	Sync *SyncRecord
	// Inputs records the data that the program got from outside, with the bytes.
	Inputs bool
	// Files stores the files of the host that the run reads, for replays when they are others.
	Files bool
	// PT, when set, records each core's branches as a stream of Intel PT packets,
	// with the code that ran.
	PT *pt.Config `json:"-"`
	// Memory, when set, records loads and stores, and the other changes of memory that loads can
	// see.
	Memory *recorder.MemoryConfig
	// Stretch is the part of the run of which events are recorded; the zero value is the whole run. What repeats the
	// run is recorded of all of it.
	Stretch recorder.Stretch `json:"-"`
}

// kinds are the streams of events that are requested.
func (r *Record) kinds() (list []trace.Kind) {
	if r.Sync != nil {
		list = append(list, trace.Sync)
	}
	if r.Memory != nil && !r.Memory.Repeated {
		list = append(list, trace.Memory)
	}
	return list
}

// recording is the part of the machine's state that records and replays. The
// zero value does neither.
type recording struct {
	rec       *recorder.Recorder
	steps     *replay.Tracker
	decisions *trace.Stream
	delays    *delays.Log    // nil unless stores wait
	syncs     *syncRecording // nil unless operations are recognized
}

// setUpRecording sets up the recordings of the configuration.
func (m *Machine) setUpRecording() error {
	c, s := &m.config, m.state
	if c.Record != nil || c.Replay != nil || m.with.start != nil {
		s.recording.steps = replay.NewTracker(c.Cores)
	}
	if c.Record == nil {
		return m.watchUnrecorded()
	}
	if c.Record.Listener != nil {
		m.trace = trace.NewListenedWriter(c.Record.Listener)
	} else {
		m.trace = trace.NewWriter(c.Record.To)
	}
	if err := m.trace.Manifest(m.describeRun()); err != nil {
		return errManifest.Wrap(err)
	}
	s.recording.decisions = m.trace.Stream(trace.Decisions, 0)
	if _, byStore := s.stores.(*storebuffer.ByStore); byStore {
		s.recording.delays = delays.New(m.trace, c.Cores)
	}
	parts, err := m.recordings()
	if err != nil {
		return err
	}
	m.startRecordings(append(m.watching, parts...))
	return m.limitRecording()
}

// startRecordings gives the recordings the events of the run.
func (m *Machine) startRecordings(parts []recorder.Recording) {
	s := m.state
	s.recording.rec = recorder.New(m.trace, m.cpu, m.config.Cores, parts...)
	s.clock.recorder = s.recording.rec
	if s.control != nil {
		s.control.recorder = s.recording.rec
	}
	if s.recording.syncs != nil {
		s.recording.syncs.recorder = s.recording.rec
	}
}

// recordings returns the recordings of the configuration. Branches count the branches of stamps,
// and sync operations name threads: both precede the writers of stamps and names.
func (m *Machine) recordings() (parts []recorder.Recording, err error) {
	c := &m.config
	for _, begin := range m.engineLogs() {
		p, err := m.inStretch(begin)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	operations, err := m.recordSync()
	if err != nil {
		return nil, err
	}
	parts = append(append(parts, operations...), recorder.NewEvents(m.trace), recorder.NewMappings(m.trace))
	if c.Record.Inputs {
		parts = append(parts, recorder.NewInputs(m.trace, c.Args, c.Env))
	}
	for _, watching := range m.with.watching {
		p, err := m.inStretch(func() (recorder.Recording, error) { return watching, nil })
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// engineLogs returns functions that make the recordings of the engine's logs.
func (m *Machine) engineLogs() (list []func() (recorder.Recording, error)) {
	c := &m.config
	if c.Record.PT != nil {
		list = append(list, func() (recorder.Recording, error) {
			return recorder.NewBranches(m.trace, m.cpu, c.Cores, *c.Record.PT)
		})
	}
	if c.Record.Memory != nil {
		list = append(list, func() (recorder.Recording, error) {
			return recorder.NewMemory(m.trace, m.cpu, *c.Record.Memory, c.Record.PT == nil)
		})
	}
	return list
}

// attach gives the recordings the guest's Linux.
func (r *recording) attach(k *kernel.Kernel) {
	if r.rec != nil {
		r.rec.Attach(k)
	}
}

// noteQuantum records the decision to run a quantum, and noteTimer to fire a timer.
func (r *recording) noteQuantum(s sched.Quantum, c *sched.Cluster) {
	if r.steps != nil {
		r.steps.Quantum(s.Thread, s.Core, c)
	}
	if r.rec != nil {
		r.rec.Turn(s.Thread, s.Core, c.Now(s.Core))
	}
}

// noteCommits records the stores that were committed before the quantum.
func (r *recording) noteCommits(list []event.Commit) {
	if r.steps != nil {
		r.steps.Commits(list)
	}
}

func (r *recording) noteTimer(at arch.Cycles, c *sched.Cluster) {
	if r.steps != nil {
		r.steps.Timer(at, c)
	}
	if r.rec != nil {
		r.rec.Timer(at)
	}
}

// recordAs records accesses to memory as another thread's.
func (r *recording) recordAs(t arch.ThreadID, core arch.CoreID, do func()) {
	if r.rec == nil {
		do()
		return
	}
	r.rec.Aside(t, core, do)
}

// noteStart records that a thread is about to run, noteContinue that the engine is, noteStop that the
// engine has stopped, and noteEnd that the quantum is over.
func (r *recording) noteStart(t *kernel.Task) {
	if r.rec != nil {
		r.rec.Run(t)
	}
}

func (r *recording) noteContinue() {
	if r.rec != nil {
		r.rec.Continue()
	}
}

func (r *recording) noteStop(t *kernel.Task, s arch.Stop) {
	if r.rec != nil {
		r.rec.Stopped(t, s)
	}
}

func (r *recording) noteEnd(t *kernel.Task, s arch.Stop, now arch.Cycles) {
	if r.steps != nil {
		r.steps.Ran(s, now)
	}
	if r.rec != nil {
		r.rec.Ran(t, s, now)
	}
}

// completeDecision completes a decision.
func (r *recording) completeDecision() {
	if r.steps == nil {
		return
	}
	d := r.steps.Done()
	if r.decisions != nil {
		trace.PutAt(r.decisions, &d, r.rec.At())
	}
}

// noteSnapshot notes the place of a snapshot, and noteRestore that the machine is there again.
func (r *recording) noteSnapshot() {
	if r.rec != nil {
		r.rec.Mark()
	}
}

func (r *recording) noteRestore() {
	if r.rec != nil {
		r.rec.Returned()
	}
}

// finishRecording completes the trace of a run that is over, but for the index.
func (m *Machine) finishRecording() error {
	if m.trace == nil {
		return nil
	}
	r := m.state.recording
	if m.bounded != nil {
		m.result.Stretch = m.bounded.Result(m.result.Cycles)
	}
	end := r.steps.End(m.state.cluster)
	trace.PutAt(r.decisions, &end, r.rec.At())
	r.rec.Finish()
	if m.config.Record.Files {
		inputfiles.Store(m.trace, r.rec.At(), m.state.fs)
	}
	if err := m.trace.Summary(summary{Result: m.result}); err != nil {
		return errManifest.Wrap(err)
	}
	return m.trace.Sync()
}

// CloseTrace completes the trace, after which nothing more is recorded, and returns the reason
// if recording ended early. Close does the same without the reason.
func (m *Machine) CloseTrace() error {
	if m.trace == nil {
		return nil
	}
	return m.trace.Close()
}

// kernelObserver passes the events of the kernel to the digest and to the recording.
type kernelObserver struct {
	*digest
	recording *recording
}

// Syscall implements kernel.Observer.
func (w *kernelObserver) Syscall(t *kernel.Task, number uint64, args [6]uint64, ret uint64) {
	w.digest.Syscall(t, number, args, ret)
	if r := w.recording; r.steps != nil {
		r.steps.Syscall(t.ID(), number, args, ret)
	}
	if r := w.recording; r.rec != nil {
		r.rec.Syscall(t, number, args, ret)
	}
}

// Signal implements kernel.Observer.
func (w *kernelObserver) Signal(d *kernel.Delivery) {
	w.digest.Signal(d.Thread, d.Signal)
	if r := w.recording; r.steps != nil {
		r.steps.Signal(d.Thread, d.Signal)
	}
	if r := w.recording; r.rec != nil {
		r.rec.Signal(d)
	}
}

// Exit implements kernel.Observer.
func (w *kernelObserver) Exit(t arch.ThreadID, status int) {
	w.digest.Exit(t, status)
	if r := w.recording; r.steps != nil {
		r.steps.Exit(t, status)
	}
	if r := w.recording; r.rec != nil {
		r.rec.Exit(t, status)
	}
}

// namedFile returns the file that a reader is and that a replay can open again, a regular one or
// /dev/null; or nil.
func namedFile(r io.Reader) *os.File {
	f, ok := r.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() && !vfs.IsNull(f) {
		return nil
	}
	return f
}
