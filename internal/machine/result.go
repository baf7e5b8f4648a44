package machine

import (
	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/recorder"
)

// Result is the outcome of a run, with its counts and digests. Its JSON form is the summary file
// of `heddle run`.
type Result struct {
	// Outcome is how the run ended.
	Outcome Outcome `json:"outcome"`
	// ExitCode is the status of the first process, 128+n after a signal n.
	ExitCode int `json:"exit_code"`
	// Signal is the number of the signal that killed the first process, or 0.
	Signal int `json:"signal"`
	// Message is a sentence on why a run that did not exit by itself ended, with
	// every thread's state after a deadlock.
	Message string `json:"message,omitempty"`

	// Instructions counts instructions retired by all threads.
	Instructions uint64 `json:"instructions"`
	// Cycles is the virtual makespan: the largest core clock at the end.
	Cycles uint64 `json:"cycles"`
	// Threads and Processes count all that ever ran.
	Threads   int `json:"threads"`
	Processes int `json:"processes"`
	// ContextSwitches counts how often a core went from one thread to another.
	ContextSwitches uint64 `json:"context_switches"`
	// Turns counts maximal runs of one thread without another between them.
	Turns uint64 `json:"turns"`

	// Syscalls counts system calls by name.
	Syscalls map[string]uint64 `json:"syscalls"`
	// UnsupportedSyscalls counts the calls that were answered with ENOSYS.
	UnsupportedSyscalls map[string]uint64 `json:"unsupported_syscalls"`
	// Inputs lists the host files that were read, with SHA-256, by path.
	Inputs []Input `json:"inputs"`
	// Faults are the failures of standard input, output and error on the host that
	// the guest has seen. They are inputs too.
	Faults []StreamFault `json:"stream_faults,omitempty"`
	// Clients describes the clients outside of the guest, if ports were published.
	Clients *publish.Stats `json:"clients,omitempty"`
	// Requests describes the requests to the ports of Config.Requests.
	Requests []requests.Summary `json:"requests,omitempty"`
	// OverlayFiles are the guest paths of files left in the overlay.
	OverlayFiles []string `json:"overlay_files"`
	// Unseen lists paths that the guest has not found although the host has them (vfs.FS.Unseen).
	Unseen []string `json:"-"`
	// InvalidInstruction says which instruction that the machine's processor does not
	// have was the first to kill a process, or that glibc refused a program because of the
	// processor's level.
	InvalidInstruction string `json:"invalid_instruction,omitempty"`
	// MemoryShortage says which request was the first that could not be met for want of
	// memory, which the program may have dealt with, and which option raises the bound.
	MemoryShortage string `json:"memory_shortage,omitempty"`
	// SyncRecognition says how synchronization operations were recognised, if
	// they were recorded: "symbols", or "futex" if a program of the run had no
	// function that is known, so that only its futex calls, atomic instructions
	// and threads were.
	SyncRecognition string `json:"sync_recognition,omitempty"`

	// Stretch is the part of the run of which events were recorded, if not all of it.
	Stretch *recorder.StretchResult `json:"stretch,omitempty"`

	// Schedule is how the run followed the schedule that was enforced, if there was one.
	Schedule *ScheduleResult `json:"schedule,omitempty"`

	// StateDigest covers the parts that are equal in two runs of one schedule, whatever
	// their interleaving: output, exit, final memory, and how many instructions
	// each thread retired.
	StateDigest string `json:"state_digest"`
	// Digest covers output, exit, final memory and the order of all events.
	Digest string `json:"digest"`
	// ScheduleDigest covers the interleaving alone.
	ScheduleDigest string `json:"schedule_digest"`
	// OutputDigest covers standard output and standard error alone.
	OutputDigest string `json:"output_digest"`
	// StdoutDigest covers standard output alone: its bytes, however they were divided into writes.
	StdoutDigest string `json:"stdout_digest"`

	// Engine names the version of the emulation engine.
	Engine string `json:"engine"`
	// CPU is the level of the emulated processor.
	CPU string `json:"cpu"`
	// PeakMemory is the largest number of bytes the guest held at once.
	PeakMemory uint64 `json:"peak_memory"`
	// HostSeconds is the host's time for the run. It is no part of any digest.
	HostSeconds float64 `json:"host_seconds"`
}

// Input is a host file that the guest read.
type Input struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}
