package trace

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Event is an event that has a stream of its own kind.
type Event interface {
	event.Switch | event.Start | event.Exit | event.Syscall | event.Signal | event.Sync | event.Input |
		event.Decision | event.Code | event.Object | event.Mapping | event.Heap | event.Delay | event.StreamFault |
		event.Client | event.Registers | event.Area | event.File
}

// archive is a form from or to which the fields of an event are converted: the binary form,
// the text form, the names alone. Each method is given the value of a field, and
// returns its new value.
type archive interface {
	// numberField is a field; signed and unsigned ones alike are their 64 bits.
	numberField(name string, as format, v uint64) uint64
	// nameField is a field that is a name out of a list, at its place in it.
	nameField(name string, list []string, v uint64) uint64
	textField(name string, v string) string
	bytesField(name string, v []byte) []byte
	// listField is a list: grow is called with its length when it comes from the
	// archive, then item for each.
	listField(name string, n int, grow func(int), item func(int))
}

// format is how a number is shown.
type format uint8

const (
	decimal format = iota
	signed         // and as zigzag in the binary form
	hexadecimal
	yesno
)

func unsignedField[T ~uint64 | ~uint32 | ~uint16 | ~uint8](a archive, name string, as format, v *T) {
	*v = T(a.numberField(name, as, uint64(*v)))
}

func signedField[T ~int64 | ~int32](a archive, name string, v *T) {
	*v = T(int64(a.numberField(name, signed, uint64(int64(*v)))))
}

func booleanField(a archive, name string, v *bool) {
	x := uint64(0)
	if *v {
		x = 1
	}
	*v = a.numberField(name, yesno, x) != 0
}

func choiceField[T ~uint8 | ~uint16](a archive, name string, list []string, v *T) {
	*v = T(a.nameField(name, list, uint64(*v)))
}

var (
	phaseNames    = []string{event.Whole.String(), event.Enter.String(), event.Return.String(), event.Unwound.String()}
	decisionNames = []string{event.DecideQuantum.String(), event.DecideTimer.String(), event.DecideEnd.String()}
)

func stampFields(a archive, s *event.Stamp) {
	unsignedField(a, "seq", decimal, &s.Seq)
	unsignedField(a, "sync", decimal, &s.Sync)
	signedField(a, "thread", &s.Thread)
	signedField(a, "core", &s.Core)
	unsignedField(a, "time", decimal, &s.Time)
	unsignedField(a, "instructions", decimal, &s.Instructions)
	unsignedField(a, "branches", decimal, &s.Branches)
}

// eventFields takes each field of an event, a pointer, to or from the archive.
func eventFields(a archive, e any) {
	switch e := e.(type) {
	case *event.Switch:
		stampFields(a, &e.Stamp)
		signedField(a, "process", &e.Process)
		unsignedField(a, "offset", decimal, &e.Offset)
		unsignedField(a, "core_instructions", decimal, &e.CoreInstructions)
	case *event.Start:
		stampFields(a, &e.Stamp)
		signedField(a, "process", &e.Process)
		signedField(a, "parent", &e.Parent)
		e.Name = a.textField("name", e.Name)
	case *event.Exit:
		stampFields(a, &e.Stamp)
		signedField(a, "status", &e.Status)
	case *event.Syscall:
		syscallFields(a, e)
	case *event.Signal:
		stampFields(a, &e.Stamp)
		signedField(a, "number", &e.Number)
		unsignedField(a, "pc", hexadecimal, &e.PC)
		e.Info = a.bytesField("info", e.Info)
	case *event.Sync:
		syncFields(a, e)
	case *event.Object:
		stampFields(a, &e.Stamp)
		unsignedField(a, "id", hexadecimal, &e.ID)
		e.Name = a.textField("name", e.Name)
		unsignedField(a, "addr", hexadecimal, &e.Addr)
	case *event.Mapping:
		stampFields(a, &e.Stamp)
		signedField(a, "process", &e.Process)
		unsignedField(a, "addr", hexadecimal, &e.Addr)
		unsignedField(a, "size", decimal, &e.Size)
		unsignedField(a, "offset", hexadecimal, &e.Offset)
		e.Name = a.textField("name", e.Name)
	case *event.Heap:
		stampFields(a, &e.Stamp)
		choiceField(a, "op", event.HeapOps(), &e.Op)
		choiceField(a, "phase", phaseNames, &e.Phase)
		unsignedField(a, "old", hexadecimal, &e.Old)
		unsignedField(a, "size", decimal, &e.Size)
		unsignedField(a, "addr", hexadecimal, &e.Addr)
		unsignedField(a, "pc", hexadecimal, &e.PC)
	case *event.Input:
		inputFields(a, e)
	case *event.Decision:
		decisionFields(a, e)
	case *event.Delay:
		stampFields(a, &e.Stamp)
		unsignedField(a, "made", decimal, &e.Made)
		unsignedField(a, "addr", hexadecimal, &e.Addr)
		unsignedField(a, "size", decimal, &e.Size)
		unsignedField(a, "value", hexadecimal, &e.Value)
		booleanField(a, "decided", &e.Decided)
	case *event.StreamFault:
		stampFields(a, &e.Stamp)
		signedField(a, "fd", &e.FD)
		unsignedField(a, "bytes", decimal, &e.Bytes)
		unsignedField(a, "errno", decimal, &e.Errno)
	case *event.Client:
		stampFields(a, &e.Stamp)
		unsignedField(a, "decisions", decimal, &e.Decisions)
		unsignedField(a, "at", decimal, &e.At)
		choiceField(a, "op", event.ClientOps(), &e.Op)
		unsignedField(a, "connection", decimal, &e.Connection)
		unsignedField(a, "port", decimal, &e.Port)
		unsignedField(a, "size", decimal, &e.Size)
		e.Data = a.bytesField("data", e.Data)
	case *event.Registers:
		registerFields(a, e)
	case *event.Area:
		stampFields(a, &e.Stamp)
		signedField(a, "process", &e.Process)
		unsignedField(a, "addr", hexadecimal, &e.Addr)
		unsignedField(a, "size", decimal, &e.Size)
		unsignedField(a, "rights", decimal, &e.Rights)
		booleanField(a, "shared", &e.Shared)
		booleanField(a, "anonymous", &e.Anonymous)
	case *event.File:
		stampFields(a, &e.Stamp)
		e.Name = a.textField("name", e.Name)
		unsignedField(a, "size", decimal, &e.Size)
		unsignedField(a, "mode", decimal, &e.Mode)
		unsignedField(a, "uid", decimal, &e.UID)
		unsignedField(a, "gid", decimal, &e.GID)
		unsignedField(a, "links", decimal, &e.Links)
		signedField(a, "accessed", &e.Accessed)
		signedField(a, "modified", &e.Modified)
		signedField(a, "changed", &e.Changed)
		e.Data = a.bytesField("data", e.Data)
	case *event.Code:
		stampFields(a, &e.Stamp)
		unsignedField(a, "space", decimal, &e.Space)
		unsignedField(a, "addr", hexadecimal, &e.Addr)
		a.listField("counts", len(e.Counts), func(n int) { e.Counts = make([]uint64, n) }, func(i int) {
			unsignedField(a, "count", decimal, &e.Counts[i])
		})
		e.Bytes = a.bytesField("bytes", e.Bytes)
	}
}

var argNames = [6]string{"arg0", "arg1", "arg2", "arg3", "arg4", "arg5"}

func registerFields(a archive, e *event.Registers) {
	stampFields(a, &e.Stamp)
	for i := range e.General {
		unsignedField(a, generalNames[i], hexadecimal, &e.General[i])
	}
	unsignedField(a, "rip", hexadecimal, &e.PC)
	unsignedField(a, "rflags", hexadecimal, &e.Flags)
	unsignedField(a, "fs_base", hexadecimal, &e.FS)
	unsignedField(a, "gs_base", hexadecimal, &e.GS)
	e.FP = a.bytesField("fxsave", e.FP)
}

// generalNames are the names of the general registers in the order of their numbers.
var generalNames = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

func syscallFields(a archive, e *event.Syscall) {
	stampFields(a, &e.Stamp)
	choiceField(a, "phase", phaseNames, &e.Phase)
	unsignedField(a, "number", decimal, &e.Number)
	for i := range e.Args {
		unsignedField(a, argNames[i], hexadecimal, &e.Args[i])
	}
	unsignedField(a, "result", hexadecimal, &e.Result)
}

func syncFields(a archive, e *event.Sync) {
	stampFields(a, &e.Stamp)
	choiceField(a, "op", event.SyncOps(), &e.Op)
	choiceField(a, "phase", phaseNames, &e.Phase)
	unsignedField(a, "object", hexadecimal, &e.Object)
	unsignedField(a, "second", hexadecimal, &e.Second)
	unsignedField(a, "addr", hexadecimal, &e.Addr)
	unsignedField(a, "pc", hexadecimal, &e.PC)
	signedField(a, "result", &e.Result)
	signedField(a, "peer", &e.Peer)
	unsignedField(a, "effects", decimal, &e.Effects)
	unsignedField(a, "value", hexadecimal, &e.Value)
}

func inputFields(a archive, e *event.Input) {
	stampFields(a, &e.Stamp)
	choiceField(a, "source", event.InputSources(), &e.Source)
	unsignedField(a, "syscall", decimal, &e.Syscall)
	signedField(a, "fd", &e.FD)
	e.Name = a.textField("name", e.Name)
	signedField(a, "offset", &e.Offset)
	unsignedField(a, "addr", hexadecimal, &e.Addr)
	unsignedField(a, "size", decimal, &e.Size)
	e.Data = a.bytesField("data", e.Data)
}

func decisionFields(a archive, e *event.Decision) {
	choiceField(a, "kind", decisionNames, &e.Kind)
	signedField(a, "thread", &e.Thread)
	signedField(a, "core", &e.Core)
	unsignedField(a, "time", decimal, &e.Time)
	unsignedField(a, "instructions", decimal, &e.Instructions)
	unsignedField(a, "inside", decimal, &e.Inside)
	unsignedField(a, "after", decimal, &e.After)
	booleanField(a, "budget", &e.Budget)
	unsignedField(a, "stop", decimal, &e.Stop)
	unsignedField(a, "check", hexadecimal, &e.Check)
	a.listField("cores", len(e.Cores), func(n int) { e.Cores = make([]event.CoreState, n) }, func(i int) {
		signedField(a, "core", &e.Cores[i].Core)
		signedField(a, "thread", &e.Cores[i].Thread)
		unsignedField(a, "clock", decimal, &e.Cores[i].Clock)
	})
	a.listField("commits", len(e.Commits), func(n int) { e.Commits = make([]event.Commit, n) }, func(i int) {
		signedField(a, "core", &e.Commits[i].Core)
		unsignedField(a, "entry", decimal, &e.Commits[i].Entry)
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
	case *event.Client:
		return e.Stamp
	case *event.Registers:
		return e.Stamp
	case *event.Area:
		return e.Stamp
	case *event.File:
		return e.Stamp
	case *event.Decision:
		return event.Stamp{Thread: e.Thread, Core: e.Core, Time: e.Time}
	}
	return event.Stamp{Thread: arch.NoThread}
}
