package symtrace

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
)

// signalObject is the object of a signal to the process, and cancelObject of the one
// that cancels a thread.
func signalObject(number uint64) uint64 { return kernelObjects + 8*number }

func (w *threadExec) cancelObject() uint64 { return kernelObjects + 8*(signals+uint64(w.number)) }

const (
	signals      = 64
	signalCancel = 32 // of glibc: nptl/descr.h, SIGCANCEL
	signalInfo   = 128
)

// signalCall is a call about signals.
func (w *threadExec) signalCall(number uint64, args *[6]uint64) error {
	switch {
	case number == unix.SYS_KILL && args[0] == uint64(w.pass.threads[0].ID) && args[1] < signals:
		w.raisedSignals = append(w.raisedSignals, args[1])
		w.pass.signals[args[1]] = true
		w.addEvent(model.Event{Kind: model.Post, Object: w.pass.objectID(signalObject(args[1]))}, false)
		return w.completeSyscall(0)
	case number == unix.SYS_TGKILL && args[2] == signalCancel:
		for _, t := range w.pass.threads {
			if uint64(t.ID) == args[1] {
				w.storeWord(t.cancelObject(), w.pass.pool.Word(1, wordBits))
				w.addEvent(model.Event{Kind: model.Post, Object: w.pass.objectID(t.cancelObject())}, false)
				return w.completeSyscall(0)
			}
		}
	case number == unix.SYS_RT_SIGTIMEDWAIT && args[2] == 0:
		return w.waitForSignal(args)
	}
	return errNoMeaning(number)
}

func (w *threadExec) waitForSignal(args *[6]uint64) error {
	if w.endIfBlocked() {
		return nil
	}
	var set [8]byte
	if !w.readConstants(args[0], set[:]) {
		return errors.New("a thread waits for signals that depend on the schedule")
	}
	var ways []func(*threadExec)
	for n := range uint64(signals) {
		if n > 0 && symmem.ValueOf(set[:]).Lo>>(n-1)&1 != 0 && w.pass.signals[n] {
			ways = append(ways, func(w *threadExec) {
				w.addEvent(model.Event{Kind: model.Take, Object: w.pass.objectID(signalObject(n))}, false)
				info := make([]byte, signalInfo)
				binary.LittleEndian.PutUint32(info, uint32(n))
				if args[1] != 0 {
					w.kernelWrite(args[1], info)
				}
				w.deferredErr = w.completeSyscall(n)
			})
		}
	}
	return w.tryAlternatives(ways)
}
