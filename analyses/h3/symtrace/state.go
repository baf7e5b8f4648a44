package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/flows"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/oscalls"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// threadState is a thread in the middle of its path, with the trace that it has left so
// far. It has everything that taking back a choice undoes.
type threadState struct {
	ThreadTrace
	// machine has the registers; cells says which of their bytes are expressions, and
	// unknown how many.
	machine       vex.Machine
	cells         [vex.StateSize]symmem.Cell
	symbolicBytes int
	memory        *symmem.Memory
	heap          uint64 // where the next allocation begins

	// at is the next instruction, since how many were executed after the last call.
	at        paths.Position
	sinceCall uint64
	// clock is the thread's present stretch between forks and joins, and clocks how
	// many stretches of each thread come before it.
	clock  int32
	clocks []int

	// The trace. Like the other logs, these slices only grow: states that were cloned
	// one after the other share their arrays, and the latest is restored first.
	events        []model.Event
	coordinates   []Coordinate
	conditions    []model.Condition
	children      []*threadExec
	sentPieces    []flows.Piece
	raisedSignals []uint64 // signals to the process
	fileLengths   []fileLength
	waysTaken     []int // ways that were taken, of all choices
	otherOutcomes int   // calls that can have returned something else than was taken

	// fixed has the values that were chosen for symbols, and refused the guesses that
	// are wrong.
	fixed          map[string]symbolic.Value
	refusedGuesses map[string]bool

	// inSyscall says that a system call is not over, which began at syscallAt; restarts that
	// the last one was interrupted; late is the error of a way to continue after it.
	inSyscall          bool
	syscallAt          paths.Position
	syscallInterrupted bool
	deferredErr        error
	askedTime          bool // it has asked for the time
	files              map[uint64]openFile
	openedCount        uint64
	signalStack        oscalls.SignalStack

	cleanups     []uint64 // the jmp_bufs of clean-ups
	signalFrames []interruptedState
	pendingCall  *PendingCall

	finished bool
	cutShort bool // its path was not followed to its end
}

// clone copies the state: neither copy sees later changes of the other.
func (s *threadState) clone() *threadState {
	c := *s
	c.memory = s.memory.Clone()
	c.fixed, c.files, c.clocks = maps.Clone(s.fixed), maps.Clone(s.files), slices.Clone(s.clocks)
	return &c
}

// restoreState puts the thread back into a state, and takes back the threads that it has made
// since.
func (w *threadExec) restoreState(s *threadState) {
	w.pass.removeThreads(w.children[len(s.children):])
	w.threadState = *s.clone()
}
