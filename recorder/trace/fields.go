package trace

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Event is an event that has a stream of its own kind.
type Event interface {
	event.Switch | event.Start | event.Exit | event.Syscall | event.Signal | event.Sync | event.Input |
		event.Decision | event.Code | event.Object | event.Mapping | event.Heap | event.Delay | event.StreamFault
}

// archive is a form from or to which the fields of an event are converted: the binary form,
// the text form, the names alone. Each method is given the value of a field, and
// returns its new value.
type archive interface {
	// number is a field; signed and unsigned ones alike are their 64 bits.
	number(name string, as format, v uint64) uint64
	// name is a field that is a name out of a list, at its place in it.
	name(name string, list []string, v uint64) uint64
	text(name string, v string) string
	bytes(name string, v []byte) []byte
	// each is a list: grow is called with its length when it comes from the
	// archive, then item for each.
	each(name string, n int, grow func(int), item func(int))
}

// format is how a number is shown.
type format uint8

const (
	decimal format = iota
	signed         // and as zigzag in the binary form
	hexadecimal
	yesno
)

func num[T ~uint64 | ~uint32 | ~uint16 | ~uint8](a archive, name string, as format, v *T) {
	*v = T(a.number(name, as, uint64(*v)))
}

func integer[T ~int64 | ~int32](a archive, name string, v *T) {
	*v = T(int64(a.number(name, signed, uint64(int64(*v)))))
}

func boolean(a archive, name string, v *bool) {
	x := uint64(0)
	if *v {
		x = 1
	}
	*v = a.number(name, yesno, x) != 0
}

func oneOf[T ~uint8 | ~uint16](a archive, name string, list []string, v *T) {
	*v = T(a.name(name, list, uint64(*v)))
}

var (
	phaseNames    = []string{event.Whole.String(), event.Enter.String(), event.Return.String(), event.Unwound.String()}
	decisionNames = []string{event.DecideSlice.String(), event.DecideTimer.String(), event.DecideEnd.String()}
)

func stamp(a archive, s *event.Stamp) {
	num(a, "seq", decimal, &s.Seq)
	num(a, "sync", decimal, &s.Sync)
	integer(a, "thread", &s.Thread)
	integer(a, "core", &s.Core)
	num(a, "time", decimal, &s.Time)
	num(a, "instructions", decimal, &s.Instructions)
	num(a, "branches", decimal, &s.Branches)
}

// fields takes each field of an event, a pointer, to or from the archive.
func fields(a archive, e any) {
	switch e := e.(type) {
	case *event.Switch:
		stamp(a, &e.Stamp)
		integer(a, "process", &e.Process)
		num(a, "offset", decimal, &e.Offset)
		num(a, "core_instructions", decimal, &e.CoreInstructions)
	case *event.Start:
		stamp(a, &e.Stamp)
		integer(a, "process", &e.Process)
		integer(a, "parent", &e.Parent)
		e.Name = a.text("name", e.Name)
	case *event.Exit:
		stamp(a, &e.Stamp)
		integer(a, "status", &e.Status)
	case *event.Syscall:
		syscallFields(a, e)
	case *event.Signal:
		stamp(a, &e.Stamp)
		integer(a, "number", &e.Number)
		num(a, "pc", hexadecimal, &e.PC)
		e.Info = a.bytes("info", e.Info)
	case *event.Sync:
		syncFields(a, e)
	case *event.Object:
		stamp(a, &e.Stamp)
		num(a, "id", hexadecimal, &e.ID)
		e.Name = a.text("name", e.Name)
		num(a, "addr", hexadecimal, &e.Addr)
	case *event.Mapping:
		stamp(a, &e.Stamp)
		integer(a, "process", &e.Process)
		num(a, "addr", hexadecimal, &e.Addr)
		num(a, "size", decimal, &e.Size)
		num(a, "offset", hexadecimal, &e.Offset)
		e.Name = a.text("name", e.Name)
	case *event.Heap:
		stamp(a, &e.Stamp)
		oneOf(a, "op", event.HeapOps(), &e.Op)
		oneOf(a, "phase", phaseNames, &e.Phase)
		num(a, "old", hexadecimal, &e.Old)
		num(a, "size", decimal, &e.Size)
		num(a, "addr", hexadecimal, &e.Addr)
		num(a, "pc", hexadecimal, &e.PC)
	case *event.Input:
		inputFields(a, e)
	case *event.Decision:
		decisionFields(a, e)
	case *event.Delay:
		stamp(a, &e.Stamp)
		num(a, "made", decimal, &e.Made)
		num(a, "addr", hexadecimal, &e.Addr)
		num(a, "size", decimal, &e.Size)
		num(a, "value", hexadecimal, &e.Value)
		boolean(a, "decided", &e.Decided)
	case *event.StreamFault:
		stamp(a, &e.Stamp)
		integer(a, "fd", &e.FD)
		num(a, "bytes", decimal, &e.Bytes)
		num(a, "errno", decimal, &e.Errno)
	case *event.Code:
		stamp(a, &e.Stamp)
		num(a, "space", decimal, &e.Space)
		num(a, "addr", hexadecimal, &e.Addr)
		a.each("counts", len(e.Counts), func(n int) { e.Counts = make([]uint64, n) }, func(i int) {
			num(a, "count", decimal, &e.Counts[i])
		})
		e.Bytes = a.bytes("bytes", e.Bytes)
	}
}

var argNames = [6]string{"arg0", "arg1", "arg2", "arg3", "arg4", "arg5"}

func syscallFields(a archive, e *event.Syscall) {
	stamp(a, &e.Stamp)
	oneOf(a, "phase", phaseNames, &e.Phase)
	num(a, "number", decimal, &e.Number)
	for i := range e.Args {
		num(a, argNames[i], hexadecimal, &e.Args[i])
	}
	num(a, "result", hexadecimal, &e.Result)
}

func syncFields(a archive, e *event.Sync) {
	stamp(a, &e.Stamp)
	oneOf(a, "op", event.SyncOps(), &e.Op)
	oneOf(a, "phase", phaseNames, &e.Phase)
	num(a, "object", hexadecimal, &e.Object)
	num(a, "second", hexadecimal, &e.Second)
	num(a, "addr", hexadecimal, &e.Addr)
	num(a, "pc", hexadecimal, &e.PC)
	integer(a, "result", &e.Result)
	integer(a, "peer", &e.Peer)
	num(a, "effects", decimal, &e.Effects)
	num(a, "value", hexadecimal, &e.Value)
}

func inputFields(a archive, e *event.Input) {
	stamp(a, &e.Stamp)
	oneOf(a, "source", event.InputSources(), &e.Source)
	num(a, "syscall", decimal, &e.Syscall)
	integer(a, "fd", &e.FD)
	e.Name = a.text("name", e.Name)
	integer(a, "offset", &e.Offset)
	num(a, "addr", hexadecimal, &e.Addr)
	num(a, "size", decimal, &e.Size)
	e.Data = a.bytes("data", e.Data)
}

func decisionFields(a archive, e *event.Decision) {
	oneOf(a, "kind", decisionNames, &e.Kind)
	integer(a, "thread", &e.Thread)
	integer(a, "core", &e.Core)
	num(a, "time", decimal, &e.Time)
	num(a, "instructions", decimal, &e.Instructions)
	num(a, "inside", decimal, &e.Inside)
	num(a, "after", decimal, &e.After)
	boolean(a, "budget", &e.Budget)
	num(a, "stop", decimal, &e.Stop)
	num(a, "check", hexadecimal, &e.Check)
	a.each("cores", len(e.Cores), func(n int) { e.Cores = make([]event.CoreState, n) }, func(i int) {
		integer(a, "core", &e.Cores[i].Core)
		integer(a, "thread", &e.Cores[i].Thread)
		num(a, "clock", decimal, &e.Cores[i].Clock)
	})
	a.each("commits", len(e.Commits), func(n int) { e.Commits = make([]event.Commit, n) }, func(i int) {
		integer(a, "core", &e.Commits[i].Core)
		num(a, "entry", decimal, &e.Commits[i].Entry)
	})
}

// stampOf is the stamp of an event, a pointer. Decisions have none of their own:
// they come with the sequence of the run as far as they know it.
func stampOf(e any) event.Stamp {
	switch e := e.(type) {
	case *event.Switch:
		return e.Stamp
	case *event.Start:
		return e.Stamp
	case *event.Exit:
		return e.Stamp
	case *event.Syscall:
		return e.Stamp
	case *event.Signal:
		return e.Stamp
	case *event.Sync:
		return e.Stamp
	case *event.Input:
		return e.Stamp
	case *event.Code:
		return e.Stamp
	case *event.Object:
		return e.Stamp
	case *event.Mapping:
		return e.Stamp
	case *event.Heap:
		return e.Stamp
	case *event.Delay:
		return e.Stamp
	case *event.StreamFault:
		return e.Stamp
	case *event.Decision:
		return event.Stamp{Thread: e.Thread, Core: e.Core, Time: e.Time}
	}
	return event.Stamp{Thread: arch.NoThread}
}
