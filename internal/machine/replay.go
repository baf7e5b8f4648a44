package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errname"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine/inputfiles"
	"github.com/heddle-dmt/heddle/internal/machine/jsontext"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/replay"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	schedreplay "github.com/heddle-dmt/heddle/sched/replay"
)

var (
	errNoReplay = errs.Define("trace-cannot-be-replayed",
		"the trace {file} cannot be replayed: it has no {missing}",
		"The part of the trace that repeats the run was not recorded or is damaged.",
		"Record the run again with heddle record.")

	errInputChanged = errs.Define("replay-input-changed",
		"the trace {file} cannot be replayed: {input} is not what it was when the run was recorded",
		"The program, a library or another file that the run read, or its folder, was changed, replaced or removed since. The SHA-256 of the file is not the one in the trace.",
		"Put the file or folder back as it was, or record the run again: heddle record --files keeps the files in the trace, but not their folders.")

	errReplayLevel = errs.Define("trace-needs-newer-processor",
		"the trace {file} cannot be replayed here: its run has a processor of level {level}, whose instructions this host's processor lacks",
		"The engine direct has the host's processor execute the instructions of the run.",
		"Replay it on an x86-64 host with AVX2, or record the run again with heddle record --cpu x86-64-v2.")

	errOfStretch = errs.Define("trace-of-stretch",
		"the trace {file} is of a stretch of a run, and the events of the whole run are needed",
		"Only a part of the run was recorded. A schedule or a path of a run is about all of it.",
		"Record the whole run: heddle replay -o NEW TRACE with the recordings that are needed.")
)

// manifest is the description of a run in its trace, from before the run.
type manifest struct {
	Engine  string          `json:"engine"`
	CPU     string          `json:"cpu"`
	Args    []jsontext.Text `json:"args"`
	Env     []jsontext.Text `json:"env"`
	Dir     jsontext.Text   `json:"dir"`
	UID     uint32          `json:"uid"`
	GID     uint32          `json:"gid"`
	Cores   int             `json:"cores"`
	Seed    uint64          `json:"seed"`
	Sched   sched.Options   `json:"sched"`
	Control dmt.Control     `json:"control"`
	// CustomSync are the operations that were controlled besides the known ones.
	CustomSync []syncops.Custom `json:"custom_sync,omitempty"`
	// Enforce is the schedule that the run followed.
	Enforce         *Enforce            `json:"enforce,omitempty"`
	Memory          storebuffer.Options `json:"memory"`
	Costs           arch.Costs          `json:"costs"`
	RandomizeLayout bool                `json:"randomize_layout"`
	RootFS          jsontext.Text       `json:"rootfs"`
	Named           []jsontext.Text     `json:"named,omitempty"`
	Mounts          []jsontext.Mount    `json:"mounts"`
	Hidden          []jsontext.Text     `json:"hidden,omitempty"`
	HostTimes       bool                `json:"host_times"`
	MaxMemory       uint64              `json:"max_memory"`
	MaxInstructions uint64              `json:"max_instructions"`
	UnknownENOSYS   bool                `json:"unknown_enosys"`
	Stdin           jsontext.Stdin      `json:"stdin"`
	Publish         []publish.Port      `json:"publish,omitempty"`
	Requests        []uint16            `json:"requests,omitempty"`
	Service         json.RawMessage     `json:"service,omitempty"`
	// Recordings are the streams that were requested (trace.Reader.Recorded).
	Recordings []trace.Kind `json:"recordings,omitempty"`
	// Stretch is the part of the run of which events were recorded.
	Stretch *recorder.Stretch `json:"stretch,omitempty"`
	// Record has the recordings that number events, if it says that the accesses to memory are those of a replay.
	Record *Record `json:"record,omitempty"`
	// Closed are the descriptors of 0, 1 and 2 that the program did not have.
	Closed []int `json:"closed,omitempty"`
}

// summary is the description of a run in its trace, from after its end.
type summary struct {
	Result Result `json:"result"`
	// StdinFailed, in a trace without StreamFaults, reports that standard input ended with an
	// error.
	StdinFailed bool `json:"stdin_failed,omitempty"`
}

// describeRun returns the manifest of the run.
func (m *Machine) describeRun() manifest {
	c := &m.config
	out := manifest{
		Engine: c.engineName(), CPU: c.CPU.String(), Args: jsontext.Of(c.Args), Env: jsontext.Of(c.Env), Dir: jsontext.Text(c.Dir), UID: c.UID, GID: c.GID,
		Cores: c.Cores, Seed: c.Seed, Sched: c.Sched, Control: c.Control, Memory: c.Memory, Costs: c.Costs, RandomizeLayout: c.RandomizeLayout,
		RootFS: jsontext.Text(c.RootFS), HostTimes: c.HostTimes, MaxMemory: c.MaxMemory, MaxInstructions: c.MaxInstructions,
		UnknownENOSYS: c.UnknownENOSYS, Stdin: describeStdin(c.Stdin), Enforce: c.Enforce, Publish: c.Publish, Requests: c.Requests, Service: c.Service,
		Recordings: c.Record.kinds(), Named: jsontext.Of(c.Named),
	}
	if s := &c.Record.Stretch; !s.IsWhole() {
		out.Stretch = s
	}
	if r := c.Record; r.Memory != nil && r.Memory.Repeated {
		out.Record = r
	}
	if m.state.control != nil {
		out.CustomSync = m.customSync()
	}
	if len(c.Hidden) > 0 {
		out.Hidden = jsontext.Of(c.Hidden)
	}
	for fd, closed := range c.Closed {
		if closed {
			out.Closed = append(out.Closed, fd)
		}
	}
	for _, mount := range c.Mounts {
		out.Mounts = append(out.Mounts, jsontext.Mount{Host: jsontext.Text(mount.Host), Guest: jsontext.Text(mount.Guest), Writable: mount.Writable})
	}
	return out
}

func describeStdin(r io.Reader) jsontext.Stdin {
	if r == nil {
		return jsontext.Stdin{Kind: "none"}
	}
	f := namedFile(r)
	if f == nil {
		return jsontext.Stdin{Kind: "stream"}
	}
	at, _ := f.Seek(0, io.SeekCurrent) // such a file has a position
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		path = f.Name()
	}
	return jsontext.Stdin{Kind: "file", Name: jsontext.Text(f.Name()), Path: jsontext.Text(path), Offset: at}
}

// toConfig is the inverse of Machine.describeRun, without standard input.
func (t *manifest) toConfig() Config {
	level, _ := arch.ParseLevel(t.CPU) // traces from before there were levels have V2
	c := Config{
		Engine: engines.NameIn(t.Engine), CPU: level,
		Args: jsontext.Plain(t.Args), Env: jsontext.Plain(t.Env), Dir: string(t.Dir), UID: t.UID, GID: t.GID,
		Cores: t.Cores, Seed: t.Seed, Sched: t.Sched, Control: t.Control, CustomSync: t.CustomSync, Memory: t.Memory, Costs: t.Costs, RandomizeLayout: t.RandomizeLayout,
		RootFS: string(t.RootFS), HostTimes: t.HostTimes, MaxMemory: t.MaxMemory, MaxInstructions: t.MaxInstructions,
		UnknownENOSYS: t.UnknownENOSYS, Enforce: t.Enforce, Publish: t.Publish, Requests: t.Requests, Service: t.Service,
	}
	c.Named, c.Hidden = jsontext.Plain(t.Named), jsontext.Plain(t.Hidden)
	for fd := range c.Closed {
		c.Closed[fd] = slices.Contains(t.Closed, fd)
	}
	for _, m := range t.Mounts {
		c.Mounts = append(c.Mounts, Mount{string(m.Host), string(m.Guest), m.Writable})
	}
	return c
}

// Replay is a recorded run that can be repeated. It is for one machine at a
// time, and must be closed.
type Replay struct {
	path     string
	trace    *trace.Reader
	log      *replay.Log
	clients  *replay.ClientLog
	manifest manifest
	summary  *summary // nil if the recording was cut
	faults   []StreamFault
	stdin    *os.File
	inputs   inputfiles.Inputs // in place of files of the host that are others now
}

// OpenReplay opens a trace for a replay. It fails if the program or any other file that the
// recorded run read has changed; a recording that was cut does not list those files.
func OpenReplay(path string) (*Replay, error) {
	r, err := OpenProgram(path)
	if err != nil {
		return nil, err
	}
	if err := r.CheckDecisions(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// OpenProgram is OpenReplay for the program and the inputs of a recorded run alone: the trace
// need not have the decisions.
func OpenProgram(path string) (*Replay, error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Replay{path: path, trace: t, log: replay.NewLog(t), clients: replay.NewClientLog(t)}
	if err := r.readDescriptions(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Replay) readDescriptions() error {
	text, err := r.trace.Manifest()
	if err == nil && text != nil {
		err = json.Unmarshal(text, &r.manifest)
	}
	if err != nil || text == nil {
		return r.missing("manifest", err)
	}
	if text, err = r.trace.Summary(); err == nil && text != nil {
		r.summary = &summary{}
		err = json.Unmarshal(text, r.summary)
	}
	if err != nil {
		return r.missing("summary", err)
	}
	if r.faults, err = recordedFaults(r.trace); err != nil {
		return r.missing("record of what failed on the host", err)
	}
	if r.summary != nil && r.summary.StdinFailed {
		r.faults = append(r.faults, StreamFault{FD: 0, Bytes: r.stdinBytes(), Errno: errname.Name(unix.EIO)})
	}
	return r.checkInputs()
}

// stdinBytes returns how many bytes of standard input were recorded.
func (r *Replay) stdinBytes() (n int64) {
	for _, c := range r.trace.Chunks(trace.Key{Kind: trace.Stdin}) {
		n += int64(c.Raw)
	}
	return n
}

// missing returns the error that the trace has no such part.
func (r *Replay) missing(part string, err error) error {
	if err != nil {
		return errNoReplay.Wrap(err, r.path, part)
	}
	return errNoReplay.New(r.path, part)
}

// CheckWhole refuses a trace of a stretch of a run, for analyses that need the events from the start.
func (r *Replay) CheckWhole() error {
	if s := r.Stretch(); !s.IsWhole() {
		return errOfStretch.New(r.path)
	}
	return nil
}

// Stretch is the part of the run of which events were recorded.
func (r *Replay) Stretch() recorder.Stretch {
	if r.manifest.Stretch == nil {
		return recorder.Stretch{}
	}
	return *r.manifest.Stretch
}

// Recordings are those of the recorded run, nil if a replay does not need them for the accesses to memory.
func (r *Replay) Recordings() *Record { return r.manifest.Record }

// Cut reports whether the recording was ended before the run was over: a replay ends where it
// ends, and whether the files are those of the recorded run is not known.
func (r *Replay) Cut() bool { return r.summary == nil }

// Path is the file of the trace.
func (r *Replay) Path() string { return r.path }

// Recorded is how the recorded run ended, nil if the recording was cut.
func (r *Replay) Recorded() *Result {
	if r.summary == nil {
		return nil
	}
	return &r.summary.Result
}

// CheckDecisions returns an error if the trace does not have the decisions that repeat the run.
func (r *Replay) CheckDecisions() error {
	if !r.trace.Has(trace.Decisions) {
		return r.missing("decisions", nil)
	}
	return nil
}

// Damage lists the damaged parts of the trace.
func (r *Replay) Damage() []error { return r.trace.Damage() }

// Close closes the trace.
func (r *Replay) Close() error {
	r.closeStdin()
	return r.trace.Close()
}

// closeStdin closes the file that is standard input, which was read only.
func (r *Replay) closeStdin() {
	if r.stdin != nil {
		_ = r.stdin.Close()
		r.stdin = nil
	}
}

// checkInputs compares the files that the recorded run read.
func (r *Replay) checkInputs() error {
	if r.summary == nil {
		return nil
	}
	var list []vfs.Input
	for _, in := range r.summary.Result.Inputs {
		list = append(list, vfs.Input(in))
	}
	stdin := ""
	if r.manifest.Stdin.Kind == "file" {
		stdin = string(r.manifest.Stdin.Path)
	}
	found, missing, err := inputfiles.Find(r.trace, list, stdin)
	switch r.inputs = found; {
	case missing != "" && err != nil:
		return errInputChanged.Wrap(err, r.path, missing)
	case missing != "":
		return errInputChanged.New(r.path, missing)
	case err != nil:
		return r.missing("undamaged files", err)
	}
	return nil
}

// Config is the configuration of the recorded run, set up to repeat it. The
// caller sets the outputs and Config.Record. Each call opens standard input anew, for one run,
// and closes that of the call before.
func (r *Replay) Config() (Config, error) {
	r.closeStdin()
	c := r.manifest.toConfig()
	if c.CPU > arch.V2 && engines.Check(c.Engine, c.CPU) != nil {
		return c, errReplayLevel.New(r.path, c.CPU.String())
	}
	c.Replay, c.Faults = r, r.faults
	// In a folder that is gone there is nothing to hide.
	if path, err := filepath.Abs(r.path); err == nil {
		c.Outputs = append(c.Outputs, path)
	}
	switch in := r.manifest.Stdin; in.Kind {
	case "stream":
		c.Stdin = r.trace.Bytes(trace.Key{Kind: trace.Stdin})
	case "file":
		file, err := r.inputs.OpenStdin(string(in.Path), string(in.Name), in.Offset)
		if err != nil {
			return c, errInputChanged.Wrap(err, r.path, in.Path)
		}
		r.stdin = file
		c.Stdin = r.stdin
	}
	return c, nil
}

// RepeatTrace repeats the recorded run of a trace, and discards its output. Change, unless it
// is nil, gets the configuration first: it changes it and adds options, or returns the reason
// not to run.
func RepeatTrace(ctx context.Context, path string, change func(*Config) ([]Option, error), options ...Option) (*Result, error) {
	r, err := OpenReplay(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	c.Stdout, c.Stderr = io.Discard, io.Discard
	if change != nil {
		more, err := change(&c)
		if err != nil {
			return nil, err
		}
		options = append(slices.Clone(options), more...)
	}
	result, err := Run(ctx, c, options...)
	return result, cmp.Or(err, r.log.Err())
}

// compareDecision compares the decision that was just carried out with the recorded one. It ends
// a run that is not the recorded run.
func (m *Machine) compareDecision() {
	n, recorded := schedreplay.Current(m.state.cluster)
	if recorded == nil {
		return
	}
	if how := m.state.recording.steps.Difference(n, recorded); how != "" {
		m.diverge(how)
	}
}

// diverge ends a replay that is not the recorded run.
func (m *Machine) diverge(how string) {
	m.end(OutcomeDiverged)
	m.result.Message = "the replay is not the recorded run: " + how
}

// stopReplay ends a replay whose log cannot be followed, or is at its end, as the scheduler's
// verdict says.
func (m *Machine) stopReplay(verdict sched.Verdict) {
	why := cmp.Or(schedreplay.Why(m.state.cluster), "the recording ends here")
	n, d := schedreplay.Current(m.state.cluster)
	if verdict == sched.Diverged {
		m.diverge(replay.Place(n, d) + ": " + why)
		return
	}
	m.end(OutcomeInterrupted)
	if err := m.config.Replay.log.Err(); err != nil {
		m.end(OutcomeDamaged)
		why = err.Error()
	} else if r := m.config.Replay; r.summary != nil && r.summary.Result.Outcome == OutcomeTimeLimit {
		m.end(OutcomeTimeLimit)
		why += ": the recorded run reached its time limit"
	}
	m.result.Message = why
}

// checkReplay compares the result of a replay with that of the recorded run, if that is known.
func (m *Machine) checkReplay() {
	r := m.config.Replay
	if r == nil || r.summary == nil || m.result.Outcome == OutcomeDiverged {
		return
	}
	want, got := &r.summary.Result, &m.result
	switch {
	case got.Outcome == OutcomeDamaged, m.endedFromOutside, got.Outcome == OutcomeInterrupted && want.Outcome != OutcomeInterrupted:
		return // before the place where the recorded run ended
	case got.Digest != want.Digest:
		m.diverge(fmt.Sprintf("every decision was taken, and its digest is %s, not %s", got.Digest, want.Digest))
		got.ExitCode = ExitFailure
	case !schedreplay.Conclude(m.state.cluster):
		m.diverge("the run is over, and the recording continues")
		got.ExitCode = ExitFailure
	}
}
