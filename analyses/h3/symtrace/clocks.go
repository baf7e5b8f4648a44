package symtrace

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/flows"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

const second = 1_000_000_000

// readClock is the time of a clock in nanoseconds. It depends on the schedule, and no path determines
// it: a clock shows the time where the image is, and a nanosecond more for each instruction of the
// thread since.
func (w *threadExec) readClock(id uint64) uint64 {
	w.otherOutcomes++ // it may have been another time
	w.askedTime = true
	ns := w.Instructions
	if w.pass.image.Clock != nil {
		ns += uint64(w.pass.image.Clock(int32(id)))
	}
	return ns
}

// timeCall is a call that asks for the time.
func (w *threadExec) timeCall(number uint64, args *[6]uint64) error {
	switch number {
	case unix.SYS_TIME:
		now := w.readClock(unix.CLOCK_REALTIME) / second
		if args[0] != 0 {
			w.kernelWrite(args[0], wordBytes(now))
		}
		return w.completeSyscall(now)
	case unix.SYS_CLOCK_GETTIME:
		w.writeTime(args[1], w.readClock(args[0]), 1)
	case unix.SYS_CLOCK_GETRES:
		if args[1] != 0 {
			w.writeTime(args[1], 1, 1)
		}
	case unix.SYS_GETTIMEOFDAY:
		if args[0] != 0 {
			w.writeTime(args[0], w.readClock(unix.CLOCK_REALTIME), 1000)
		}
		if args[1] != 0 { // the time zone
			w.kernelWrite(args[1], make([]byte, 8))
		}
	}
	return w.completeSyscall(0)
}

// writeTime writes a time: seconds, and units of a number of nanoseconds.
func (w *threadExec) writeTime(to, ns, unit uint64) {
	w.kernelWrite(to, wordBytes(ns/second))
	w.kernelWrite(to+8, wordBytes(ns%second/unit))
}

// Where struct pollfd (poll(2)) has its fields, and how long it is.
const (
	pollEvents, pollResults, pollSize = 4, 6, 8
	readable, writable                = unix.POLLIN | 0x40, unix.POLLOUT | 0x100
	maxPolled                         = 3
)

// pollCall is poll(2) or select(2). Without descriptors it sleeps.
func (w *threadExec) pollCall(number uint64, args *[6]uint64) error {
	if w.endIfBlocked() {
		return nil
	}
	selects := number == unix.SYS_SELECT || number == unix.SYS_PSELECT6
	switch n := args[1]; {
	case selects && args[0] != 0, !selects && n > maxPolled:
		return errNoMeaning(number)
	case selects && args[4] != 0: // the time that is left
		w.writeTime(args[4], 0, 1)
	case !selects && n > 0:
		return w.pollDescriptors(args[0], int(n), number == unix.SYS_POLL && int32(args[2]) < 0 || number == unix.SYS_PPOLL && args[2] == 0)
	}
	return w.completeSyscall(0)
}

// pollDescriptors continues with each set of descriptors that can have been ready: no branch trace
// has it.
func (w *threadExec) pollDescriptors(at uint64, n int, endless bool) error {
	fds := make([]byte, pollSize*n)
	if !w.readConstants(at, fds) {
		return errors.New("a thread waits for descriptors that depend on the schedule")
	}
	var ways []func(*threadExec)
	for set := 1<<n - 1; set > 0 || set == 0 && !endless; set-- {
		ways = append(ways, func(w *threadExec) { w.deferredErr = w.finishPoll(at, fds, set) })
	}
	w.otherOutcomes += len(ways) - 1
	return w.tryAlternatives(ways)
}

// finishPoll continues with a set of descriptors that are ready for all that they are asked for.
func (w *threadExec) finishPoll(at uint64, fds []byte, set int) error {
	count := uint64(0)
	for i := range len(fds) / pollSize {
		fd := fds[pollSize*i:]
		events, results := binary.LittleEndian.Uint16(fd[pollEvents:]), uint16(0)
		if set>>i&1 != 0 {
			results = events & (readable | writable)
			count++
		}
		if d, ok := w.pass.descriptors[uint64(binary.LittleEndian.Uint32(fd))]; ok && d.kind == stream && events&readable != 0 {
			if err := w.addCondition(w.hasReceivable(d, results&readable != 0)); err != nil {
				return err
			}
		}
		w.kernelWrite(at+pollSize*uint64(i)+pollResults, binary.LittleEndian.AppendUint16(nil, results))
	}
	return w.completeSyscall(count)
}

// hasReceivable is that there is something to receive, or its end, or that there is not.
func (w *threadExec) hasReceivable(d descriptor, has bool) *symbolic.Expr {
	p, from := w.pass.pool, flows.Direction{Connection: d.connection, Side: 1 - d.side}
	received, sent := w.loadWord(wordReceived(from.Connection, from.Side)), w.loadWord(wordSent(from.Connection, from.Side))
	count := p.ZeroExt(p.Extract(sent, 0, closedBit), wordBits)
	is := p.Or(p.Extract(sent, closedBit, 1), p.ULT(received, count))
	if has {
		return is
	}
	return p.Not(is)
}
