package debug

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/gdbserver"
)

var errGDB = errs.Define("gdb-connection-failed",
	"the connection to GDB failed",
	"The connection broke, or the other side does not use GDB's remote protocol; the rest of the sentence says more.",
	"Connect again with GDB 8 or newer: target remote ADDRESS.")

var errGDBControlled = errs.Define("gdb-and-control",
	"GDB cannot look at a run whose synchronization operations are ordered",
	"The run follows a schedule, or has the policy rr-sync, fcfs-sync, kendo, coredet, parrot, dthreads or consequence. The controller that decides when its "+
		"threads continue cannot return to the middle of a decision, as GDB demands.",
	"Debug the run under another policy, or record it and read the trace.")

// Serve lets one GDB, which connects to l, debug a run of the machine, of which nothing must have
// run yet: forwards, and backwards over snapshots. The program's process is debugged; processes
// that it starts run along. Output that is produced again while the run is repeated is written
// once.
//
// Registers and memory can only be read. The run is the same as without GDB, and Run continues it
// when GDB detaches or disconnects; when GDB kills the program, the run is over. The caller closes
// the listener.
func Serve(m *machine.Machine, l net.Listener) error {
	if m.IsControlled() {
		return errGDBControlled.New()
	}
	conn, err := l.Accept()
	if err != nil {
		return errGDB.Wrap(err)
	}
	defer conn.Close()
	d := newDebugger(m)
	ending, err := gdbserver.Serve(conn, d)
	d.leave()
	if ending == gdbserver.Ended && !m.Done() {
		m.EndByContext(context.Background())
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return errGDB.Wrap(err)
	}
	return nil
}
