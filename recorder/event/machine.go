package event

import "github.com/heddle-dmt/heddle/emu/arch"

// Switch is one entry of the context-switch sideband: from here on the core
// runs another thread, or one that was on another core since. (H3 section 3.1.)
type Switch struct {
	Stamp
	// Process is the thread's process.
	Process int32 `json:"process"`
	// Offset is how many bytes of the core's branch trace come before.
	Offset uint64 `json:"offset"`
	// CoreInstructions counts the instructions that the core had retired, a
	// repeated string instruction once, as a decoder of the branch trace does.
	CoreInstructions uint64 `json:"core_instructions"`
}

// Syscall is the issue (Enter) or the completion (Return) of a system call.
// One that never completes, such as exit, has no Return.
type Syscall struct {
	Stamp
	Phase  Phase     `json:"phase"`
	Number uint64    `json:"number"`
	Args   [6]uint64 `json:"args"`
	// Result is the raw result, of a Return.
	Result uint64 `json:"result"`
}

// Signal is the delivery of a signal to a handler, or as the cause of death.
type Signal struct {
	Stamp
	Number int32 `json:"number"`
	// PC is the instruction that the thread would have executed next.
	PC arch.Addr `json:"pc"`
	// Info is its siginfo_t, without the zeros at its end; empty for one that the
	// thread's own instruction has caused.
	Info []byte `json:"info"`
}

// Start is the begin of a thread. Parent is the thread that made it, or
// NoThread for the first of the run.
type Start struct {
	Stamp
	Process int32         `json:"process"`
	Parent  arch.ThreadID `json:"parent"`
	// Name distinguishes the thread from all others whatever the interleaving: "1" is
	// the first of the run, "1.3" the third that thread "1" made, whether of its
	// own process or as the first of another.
	Name string `json:"name"`
}

// Exit is the end of a thread. Status is as wait(2) gives it.
type Exit struct {
	Stamp
	Status int32 `json:"status"`
}

// InputSource is the kind of source of an input.
type InputSource uint8

// Sources of inputs.
const (
	InputArgs   InputSource = iota // one argument of the program, by number
	InputEnv                       // one variable of the environment
	InputStdin                     // standard input
	InputFile                      // read from a file
	InputMap                       // a file that was mapped: Data is empty
	InputPipe                      // read from a pipe or FIFO
	InputSocket                    // received from a socket
	InputRandom                    // getrandom, /dev/urandom and the like
	InputTime                      // a clock
	InputOther                     // other descriptors: eventfd, signalfd, directories; and messages of queues
)

var inputNames = [...]string{"args", "env", "stdin", "file", "map", "pipe", "socket", "random", "time", "other"}

// InputSources lists the sources' names, in the order of their numbers.
func InputSources() []string { return inputNames[:] }

func (s InputSource) String() string {
	if int(s) < len(inputNames) {
		return inputNames[s]
	}
	return "unknown"
}

// Input is something that the guest got from outside of its memory.
type Input struct {
	Stamp
	Source InputSource `json:"source"`
	// Syscall is the system call that brought it, unless Source is InputArgs
	// or InputEnv.
	Syscall uint64 `json:"syscall"`
	// FD is the descriptor that it came from, or -1.
	FD int32 `json:"fd"`
	// Name is the guest's path of the file, if it has one.
	Name string `json:"name"`
	// Offset is where in the file it stands, or the number of the argument.
	Offset int64 `json:"offset"`
	// Addr is the input's address in the guest's memory. One call that scatters its
	// data is several inputs.
	Addr arch.Addr `json:"addr"`
	// Size is the number of bytes; Data has them all, but for InputMap.
	Size uint64 `json:"size"`
	Data []byte `json:"data"`
}

// Code is a piece of code that ran: a decoder of branch traces needs its bytes.
// Each stands from its place on, until another piece overlaps it.
type Code struct {
	Stamp
	// Space numbers the address space, as the branch traces do.
	Space uint64    `json:"space"`
	Addr  arch.Addr `json:"addr"`
	// Counts are, for each core, the number of instructions it had retired, a
	// repeated string instruction once, when the code was there.
	Counts []uint64 `json:"counts"`
	Bytes  []byte   `json:"bytes"`
}

// Registers are the registers of a thread at the beginning of a recorded stretch of a run: those with which it
// continues.
type Registers struct {
	Stamp
	// General are the sixteen general registers, in the order of their numbers.
	General [16]uint64 `json:"general"`
	PC      arch.Addr  `json:"pc"`
	Flags   uint64     `json:"flags"`
	FS      uint64     `json:"fs"` // the segments' bases
	GS      uint64     `json:"gs"`
	// FP is the FXSAVE image of the floating-point and SSE registers (Intel SDM volume 1, section 10.5).
	FP []byte `json:"fp"`
}
