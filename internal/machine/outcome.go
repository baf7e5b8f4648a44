package machine

import (
	"cmp"
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	schedreplay "github.com/heddle-dmt/heddle/sched/replay"
)

// Outcome is how a run ended. Its text is part of digests and stored results.
type Outcome string

const (
	// OutcomeExit: the first process exited.
	OutcomeExit Outcome = "exit"
	// OutcomeSignal: a signal killed the first process.
	OutcomeSignal Outcome = "signal"
	// OutcomeDeadlock: every thread waited, and nothing could wake one.
	OutcomeDeadlock Outcome = "deadlock"
	// OutcomeLimit: the run reached Config.MaxInstructions.
	OutcomeLimit Outcome = "instruction limit"
	// OutcomeStopped: the program asked for something that the machine does not have.
	OutcomeStopped Outcome = "stopped"
	// OutcomeTimeLimit: the run reached a TimeLimit, which depends on the speed of the host.
	OutcomeTimeLimit Outcome = "time limit"
	// OutcomeInterrupted: the context of the run was cancelled, or a replay reached the place
	// where its recording was.
	OutcomeInterrupted Outcome = "interrupted"
	// OutcomeDiverged: a replay was not the recorded run, or the run did not follow its schedule.
	OutcomeDiverged Outcome = "diverged"
	// OutcomeDamaged: a replay reached a damaged place of its trace.
	OutcomeDamaged Outcome = "damaged trace"
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeExit, OutcomeSignal, OutcomeDeadlock, OutcomeLimit, OutcomeStopped, OutcomeTimeLimit,
		OutcomeInterrupted, OutcomeDiverged, OutcomeDamaged,
	}
}

// String returns the outcome as results and reports name it.
func (o Outcome) String() string { return string(o) }

// Exit statuses of runs that the program did not end itself.
const (
	// ExitFailure is heddle's own failure, as of env, timeout and the like.
	ExitFailure = 125
	// ExitDeadlock and ExitLimit are those of timeout(1): the program was
	// still there.
	ExitDeadlock = 124
	ExitLimit    = 124
	// ExitTimeLimit is apart from them: another run with the same inputs may end
	// elsewhere.
	ExitTimeLimit   = 123
	ExitInterrupted = 130
)

// end marks the run as over.
func (m *Machine) end(outcome Outcome) {
	m.done = true
	m.result.Outcome = outcome
}

// report fills in the result of a run that is over.
func (m *Machine) report() error {
	s, r := m.state, &m.result
	switch r.Outcome {
	case OutcomeExit:
		m.reportExit()
	case OutcomeDeadlock:
		r.ExitCode = ExitDeadlock
		why := cmp.Or(r.Message, "every thread waits, and nothing will wake one")
		r.Message = "deadlock: " + why + "\n" + s.kernel.Describe()
	case OutcomeLimit:
		r.ExitCode = ExitLimit
		r.Message = fmt.Sprintf("the limit of %d instructions is reached\n%s", m.config.MaxInstructions, s.kernel.Describe())
	case OutcomeTimeLimit:
		r.ExitCode = ExitTimeLimit
		if m.endedFromOutside {
			r.Message += "\n" + s.kernel.Describe()
		}
	case OutcomeInterrupted:
		r.ExitCode = ExitInterrupted
		if r.Message == "" {
			r.Message = "interrupted"
		}
	case OutcomeDiverged, OutcomeDamaged:
		r.ExitCode = ExitFailure
	}
	if err := cmp.Or(m.invalidInstruction(), m.refusedProgram()); err != nil {
		r.InvalidInstruction = err.Error()
	}
	shortage := m.state.kernel.Shortage()
	r.MemoryShortage = shortage.Text(m.config.MaxMemory)
	m.drainAtEnd()
	m.reportClients()
	r.Requests = s.kernel.Network().Requests().Summarize()
	// Threads that still exist have memory too.
	s.kernel.DigestMemory()
	s.digest.endTurn()
	schedreplay.Conclude(s.cluster)
	stats := s.kernel.Stats()
	r.Instructions = s.digest.instructions
	r.Turns = s.digest.turns
	r.Cycles = uint64(s.cluster.Makespan())
	r.ContextSwitches = s.cluster.Switches()
	r.Threads, r.Processes = stats.Threads, stats.Processes
	r.Syscalls, r.UnsupportedSyscalls = stats.Syscalls, stats.Unsupported
	inputs, err := s.fs.Inputs(!m.with.unhashed)
	if err != nil {
		return errInputs.Wrap(err)
	}
	for _, i := range inputs {
		r.Inputs = append(r.Inputs, Input{Path: i.Path, SHA256: i.SHA256})
	}
	r.Faults = m.host.SeenFaults()
	r.Unseen = s.fs.Unseen()
	if r.OverlayFiles, err = s.fs.Left(); err != nil {
		return errInputs.Wrap(err)
	}
	r.SyncRecognition = s.recording.recognitionText()
	m.reportSchedule()
	r.PeakMemory = m.ram.Peak() * arch.PageSize
	r.Engine, r.CPU = m.config.engineName(), m.config.CPU.String()
	r.OutputDigest, r.StdoutDigest = hashText(s.digest.output), hashText(s.digest.stdout)
	r.ScheduleDigest = hashText(s.digest.schedule)
	hashWords(s.digest.events, uint64(r.ExitCode), uint64(r.Signal))
	_, _ = s.digest.events.WriteString(r.OutputDigest + r.ScheduleDigest + r.Outcome.String())
	r.Digest = hashText(s.digest.events)
	r.StateDigest = s.digest.stateDigest(r)
	return nil
}

// engineName describes the engine that the run has.
func (c *Config) engineName() string { return engines.Description(engines.Resolve(c.Engine, c.CPU)) }

// reportExit fills in the result of a program that has ended, or that the kernel had to stop.
func (m *Machine) reportExit() {
	r := &m.result
	if why := m.state.kernel.Fatal(); why != "" {
		r.Outcome, r.ExitCode, r.Message = OutcomeStopped, ExitFailure, why
		return
	}
	r.ExitCode, r.Signal = m.state.kernel.Status()
	if r.Signal != 0 {
		r.Outcome = OutcomeSignal
		r.ExitCode = 128 + r.Signal
		r.Message = fmt.Sprintf("killed by signal %d (%s)", r.Signal, SignalName(r.Signal))
		if shortage := m.state.kernel.Shortage(); shortage.Killed {
			r.Message += ": " + shortage.Text(m.config.MaxMemory)
		}
	}
}
