package machine

import (
	"strconv"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// The functions of this file let clients outside of the guest act on it: programs on the host
// that connect to published ports, or their operations in a recording. They act between two
// decisions only, and each operation is recorded with the number of the decisions before it and
// its virtual time. Nothing else of the host reaches the run: not when the host was asked, nor
// how long the machine has waited for it.

var errPublished = errs.Define("clients-cannot-connect",
	"the run has published ports ({ports}), and clients on the host can connect only in heddle run, heddle record, heddle races and heddle frost run, not where a run may be executed more than once, in part, or under a schedule that was made of another run",
	"What a client has sent cannot be asked for again, and what it was sent cannot be taken back.",
	"Leave --publish out, or record the run with heddle record --publish and use the recording: heddle replay, heddle races and the debugger repeat it without clients.")

// openClients sets up the clients, if the run has published ports.
func (m *Machine) openClients() (err error) {
	c := &m.config
	if len(c.Publish) == 0 {
		return nil
	}
	m.state.clients = publish.NewClients()
	switch {
	case c.Replay != nil, m.with.driven:
		return nil
	case m.with.bound == nil || m.with.isolated || m.with.policy != nil || m.with.start != nil || c.Enforce != nil || c.Control.Policy != "":
		return errPublished.New(publish.Text(c.Publish))
	}
	host, err := publish.NewHost(c.Publish)
	if err != nil {
		return err
	}
	m.clientHost = host
	for _, p := range c.Publish {
		m.with.bound(p, host.Addresses(p))
	}
	return nil
}

// letClientsAct has the clients act before the next decision. It returns false if the run has
// ended.
func (m *Machine) letClientsAct() bool {
	s := m.state
	if m.clientHost == nil {
		return m.with.driven || m.repeatOperations()
	}
	if s.cluster.Runnable() > 0 {
		return !m.clientHost.IsDue(s.digest.instructions, s.kernel.Network().ListenChanges()) || m.pollClients(s.kernel.Now())
	}
	return m.awaitClients()
}

// awaitClients waits for the clients while no thread can run: until one has woken a thread, or
// until the next timer or window is due; in windows also until one has acted. Meanwhile virtual time passes as fast as the
// host's. Where no client can act, it does not wait.
func (m *Machine) awaitClients() bool {
	s := m.state
	for now := s.kernel.Now(); ; {
		if m.isCut() {
			m.endFromOutside(m.bounds)
			return false
		}
		if !m.pollClients(now) {
			return false
		}
		if s.cluster.Runnable() > 0 || s.kernel.Done() || !m.MayClientsAct() || m.with.service != nil && s.clients.HaveActed() {
			return true
		}
		deadline, has := s.kernel.NextTimer()
		if v := m.with.service; v != nil {
			if at, found := v.Next(); found && (!has || m.toNS(at) < deadline) {
				deadline, has = m.toNS(at), true
			}
		}
		switch {
		case !has:
			now += int64(m.clientHost.Wait(publish.Forever))
		case deadline <= now:
			return true
		default:
			now = min(deadline, now+int64(m.clientHost.Wait(time.Duration(deadline-now))))
		}
	}
}

// pausesForClients has the machine wait for clients before it takes the next decision, if no thread can run and the service's
// driver has acted, or clients have, or it has not waited yet: a window may begin because of what they do.
func (m *Machine) pausesForClients() bool {
	c, v := m.state.clients, m.with.service
	if c == nil || v == nil {
		return false
	}
	acted := v.Acts != v.seen
	v.seen = v.Acts
	if m.state.cluster.Runnable() > 0 || m.state.kernel.Done() || c.HaveNotCome() && !acted {
		return false
	}
	c.Pause()
	return true
}

// MayTimePass reports whether idle time may pass: no client can act, or the machine has waited and none has.
func (m *Machine) MayTimePass() bool { return m.state.clients == nil || m.state.clients.HaveNotCome() }

// MayClientsAct reports whether a client can connect to a published port, or is connected.
func (m *Machine) MayClientsAct() bool {
	s := m.state
	return s.clients != nil && s.clients.MayAct(s.kernel.Network(), m.config.Publish)
}

// pollClients has the clients on the host act at a time in ns. It returns false if the run has
// ended.
func (m *Machine) pollClients(now int64) bool {
	g := &liveGuest{machine: m, at: m.toCycles(now)}
	if err := m.clientHost.Poll(g); err != nil {
		m.host.KeepError(err)
		m.end(OutcomeInterrupted)
		return false
	}
	if g.acted && m.trace != nil {
		// A recorder that is killed leaves no decision that depends on them without them.
		m.trace.Stream(trace.Clients, 0).Flush()
	}
	return true
}

// liveGuest is the guest as the host's side of published ports sees it.
type liveGuest struct {
	machine *Machine
	at      arch.Cycles // virtual time at which clients act
	acted   bool
}

// ListensFor implements publish.Guest.
func (g *liveGuest) ListensFor(port uint16) bool {
	return g.machine.state.kernel.Network().ListensFor(port)
}

// End implements publish.Guest.
func (g *liveGuest) End(connection uint64) publish.End {
	return g.machine.state.clients.End(connection)
}

// Act implements publish.Guest.
func (g *liveGuest) Act(e event.Client) {
	g.acted = true
	m := g.machine
	e.Decisions, e.At = m.state.clients.Decisions, g.at
	if m.trace != nil {
		e.Stamp = event.Stamp{Thread: arch.NoThread}
		if r := m.state.recording.rec; r != nil {
			e.Stamp = r.At()
		}
		trace.PutAt(m.trace.Stream(trace.Clients, 0), &e, e.Stamp)
	}
	m.CarryOut(&e)
}

// repeatOperations carries out the recorded operations that come before the next decision. It
// returns false if the run has ended.
func (m *Machine) repeatOperations() bool {
	c, log := m.state.clients, m.config.Replay.clients
	for !m.done {
		e, found := log.Operation(c.Operations)
		if err := log.Err(); err != nil {
			m.end(OutcomeDamaged)
			m.result.Message = err.Error()
			return false
		}
		if !found || e.Decisions != c.Decisions {
			return true
		}
		m.CarryOut(&e)
	}
	return false
}

// CarryOut carries out an operation of a client, between two decisions.
func (m *Machine) CarryOut(e *event.Client) {
	s := m.state
	if s.cluster.Runnable() == 0 {
		s.cluster.PassTo(e.At)
	}
	s.clock.now = e.At
	s.kernel.SetNow(m.toNS(e.At))
	taken, err := s.clients.CarryOut(e, s.kernel.Network())
	if err != nil {
		m.diverge(err.Error())
		return
	}
	s.digest.countOperation(e, taken)
	m.resolveStall(arch.NoThread, arch.NoCore, arch.Stop{})
}

// reportClients fills in the result, and counts in the digest what the guest has sent and no
// client has taken.
func (m *Machine) reportClients() {
	c := m.state.clients
	if c == nil {
		return
	}
	for connection, bytes := range c.Left() {
		m.state.digest.countRest(connection, bytes)
	}
	stats := c.Stats
	m.result.Clients = &stats
	if r := m.config.Record; m.config.Replay == nil && (r == nil || r.Listener != nil) {
		stats.Note = "the result depends on the clients that connected to published ports (connections: " +
			strconv.FormatUint(stats.Connections, 10) + "), which only a recording repeats: heddle record"
	}
}

// finishClients delivers to the clients what the guest has sent, after the run.
func (m *Machine) finishClients() {
	if m.clientHost != nil {
		m.result.Clients.Undelivered = m.clientHost.Finish(publish.EndedGuest{Clients: m.state.clients}, publish.Patience)
	}
}
