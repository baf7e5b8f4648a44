package epoch

import (
	"context"
	"net/netip"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Clients on the host act on a run with replicas at the begin of an epoch alone: they take the bytes that the guest has sent in
// epochs that are committed, and the bytes that they send are an input of the epoch, the same for all replicas and executions of it.

// Inputs are the operations of clients on the host at the begin of an epoch.
type Inputs struct {
	operations []event.Client
	// until is the time in ns of the timer for which the run has waited while no thread could run; 0: for none.
	until int64
}

// clientHost is the host's side of the published ports of a run with replicas.
type clientHost struct {
	*publish.Host
	polls int
	// last are the inputs of the epoch that was executed last, and from is where it begins.
	last *Inputs
	from *Checkpoint
	stop func() bool
}

// openClients takes the published ports of a run, if it has any.
func (r *Runner) openClients(ctx context.Context, bound func(publish.Port, []netip.AddrPort)) error {
	ports := r.config.Publish
	if len(ports) == 0 {
		return nil
	}
	host, err := publish.NewHost(ports)
	if err != nil {
		return err
	}
	r.clients = &clientHost{Host: host, stop: context.AfterFunc(ctx, host.Interrupt)}
	for _, p := range ports {
		bound(p, host.Addresses(p))
	}
	return nil
}

func (h *clientHost) close() {
	if h != nil {
		h.stop()
		h.Close()
	}
}

// guest is the guest between two epochs as the host's side of published ports sees it.
type guest struct {
	m   *machine.Machine
	now int64 // ns, the virtual time at which clients act
	to  *Inputs
}

// ListensFor implements publish.Guest.
func (g *guest) ListensFor(port uint16) bool { return g.m.Kernel().Network().ListensFor(port) }

// End implements publish.Guest.
func (g *guest) End(connection uint64) publish.End { return g.m.Clients().End(connection) }

// Act implements publish.Guest.
func (g *guest) Act(e event.Client) {
	e.At = toCycles(g.m, g.now)
	g.to.operations = append(g.to.operations, e)
	g.m.CarryOut(&e)
}

func toCycles(m *machine.Machine, ns int64) arch.Cycles {
	return arch.Cycles(ns) * arch.Cycles(m.Config().Costs.MHz) / 1000
}

// beginInputs carries out the inputs of an epoch that begins, or has clients act if they are not given.
func (r *Runner) beginInputs(ctx context.Context, from *Checkpoint, given *Inputs) (*Inputs, error) {
	if r.clients == nil || given != nil {
		given.carryOut(r.m)
		return given, nil
	}
	return r.letClientsAct(ctx, from)
}

// letClientsAct has clients act at the begin of an epoch on the leading machine. While no thread can run it waits for
// them, or until the next timer is due; meanwhile virtual time passes as fast as the host's.
func (r *Runner) letClientsAct(ctx context.Context, from *Checkpoint) (*Inputs, error) {
	m, h := r.m, r.clients
	g := &guest{m: m, now: m.Kernel().Now(), to: &Inputs{}}
	h.last, h.from = g.to, from
	for ctx.Err() == nil {
		before := len(g.to.operations)
		if err := h.Poll(g); err != nil {
			return nil, err
		}
		deadline, has := m.Kernel().NextTimer()
		switch {
		case m.Done() || !isIdle(m) || !m.MayClientsAct():
			return g.to, nil
		case len(g.to.operations) > before:
		case !has:
			g.now += int64(h.Wait(publish.Forever))
		case deadline <= g.now:
			g.to.until = deadline
			return g.to, nil
		default:
			g.now = min(deadline, g.now+int64(h.Wait(time.Duration(deadline-g.now))))
		}
	}
	return nil, context.Cause(ctx)
}

// carryOut repeats the inputs of an epoch on a machine at its begin.
func (in *Inputs) carryOut(m *machine.Machine) {
	if in == nil {
		return
	}
	for i := range in.operations {
		e := in.operations[i]
		m.CarryOut(&e)
	}
}

// isIdle reports whether no thread can run, and none is held.
func isIdle(m *machine.Machine) bool { return m.Cluster().Runnable() == 0 && m.Gate().Waiting() == 0 }

// awaitsClients reports whether the epoch is over since all threads wait, and clients may act before the next timer
// is due.
func (e *epochRun) awaitsClients(in *Inputs) bool {
	if in == nil || !isIdle(e.m) || !e.m.MayClientsAct() {
		return false
	}
	deadline, has := e.m.Kernel().NextTimer()
	return !has || deadline > max(in.until, e.m.Kernel().Now())
}

// stepsBetweenPolls is the number of steps of the leading machine after which it looks whether there is something for
// clients or from them.
const stepsBetweenPolls = 64

// haveClientsNews reports from time to time whether the epoch is to end, since the guest has sent more to clients than a number
// of bytes, and whether the host has something for the guest.
func (r *Runner) haveClientsNews(sent int) (output, input bool) {
	h := r.clients
	if h == nil {
		return false, false
	}
	if h.polls++; h.polls%stepsBetweenPolls != 0 {
		return false, false
	}
	return r.m.Clients().Pending() > sent, h.Ready()
}

// repeatInputs carries out the inputs of the epoch that begins at a state and is given up: bytes that clients have taken there
// are not delivered again.
func (h *clientHost) repeatInputs(m *machine.Machine, at *Checkpoint) {
	if h != nil && h.from == at {
		h.last.carryOut(m)
	}
}

// finish delivers the guest's bytes to clients, after the run, and returns how many bytes clients did not take.
func (h *clientHost) finish(m *machine.Machine) int {
	return h.Finish(publish.EndedGuest{Clients: m.Clients()}, publish.Patience)
}
