package publish

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var (
	errBind = errs.Define("port-cannot-be-published",
		"port {port} of the guest cannot be published on {address}",
		"The port of the host is in use, is below 1024 and needs privileges, or the address is not one of this host; the rest of the sentence says which.",
		"Name another port of the host with --publish, such as 8080:80; 0:80 takes a free one and says which.")
	errListen = errs.Define("published-port-lost",
		"the published port {address} cannot take connections",
		"Another program has begun to listen on the port of the host since the run has started, or the host refuses a call on sockets; the rest of the sentence says which.",
		"Stop the other program, or name another port of the host with --publish.")
)

// Guest is the guest with its ends of the connections.
type Guest interface {
	// ListensFor reports whether a client can connect to a port of the guest.
	ListensFor(port uint16) bool
	// Act carries out an operation of a client; End is the guest's end of a connection that
	// one has made, nil if it is over. A guest that returns to an earlier state has other ends there.
	Act(e event.Client)
	End(connection uint64) End
}

// Host is the host's side of published ports. It is for one goroutine, but for Interrupt, and
// must be closed.
type Host struct {
	epoll     int
	listeners []*listener
	links     []*link         // that are not closed, by number
	byHandle  map[int32]*link // by the descriptor of their connection
	accepted  uint64          // connections so far
	buffer    []byte
	events    [256]unix.EpollEvent
	asked     pace

	mu          sync.Mutex
	wake        int // an eventfd that Interrupt makes readable
	interrupted bool
}

// pace is when the host was asked last.
type pace struct {
	steps                 int // since then
	instructions, listens uint64
}

// While threads can run, the host is asked every stepsBetweenPolls decisions, or instructionsBetweenPolls instructions.
const (
	stepsBetweenPolls        = 64
	instructionsBetweenPolls = 100_000
)

// IsDue reports whether it is time to call Poll before a decision, after a number of instructions of the run and of changes of what
// it listens on. It is when a socket of the guest begins to listen: the host does so before the program can say that it is ready.
func (h *Host) IsDue(instructions, listens uint64) bool {
	p := &h.asked
	p.steps++
	if p.steps < stepsBetweenPolls && instructions-p.instructions < instructionsBetweenPolls && listens == p.listens {
		return false
	}
	*p = pace{0, instructions, listens}
	return true
}

// listener is one address of a published port. It is bound from the start on and listens while
// the guest does, so that a client is refused by the host when the guest would refuse it.
type listener struct {
	handle    int
	address   netip.AddrPort
	port      Port
	listening bool
	ready     bool // connections may wait to be accepted
}

// backlog is the number of connections that the host keeps until they are accepted.
const backlog = 4096

// NewHost takes the ports of the host. No client can connect before Poll.
func NewHost(ports []Port) (*Host, error) {
	h := &Host{epoll: -1, wake: -1, byHandle: map[int32]*link{}, buffer: make([]byte, pieceSize)}
	if err := h.open(ports); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Host) open(ports []Port) (err error) {
	if h.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if h.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if err := h.watch(h.wake, unix.EPOLLIN); err != nil {
		return err
	}
	for _, p := range ports {
		if err := h.bindPort(p); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) watch(handle int, events uint32) error {
	return unix.EpollCtl(h.epoll, unix.EPOLL_CTL_ADD, handle, &unix.EpollEvent{Events: events, Fd: int32(handle)})
}

// freePorts is how often a free port is looked for that all addresses of a Port have.
const freePorts = 100

// bindPort takes the addresses of a port.
func (h *Host) bindPort(p Port) error {
	number, tries := p.Host, 1
	if number == 0 {
		tries = freePorts
	}
	var err error
	for range tries {
		if p.Host == 0 {
			if number, err = findFreePort(p.addresses()[0]); err != nil {
				break
			}
		}
		var taken []*listener
		if taken, err = bindAddresses(p, number); err == nil {
			h.listeners = append(h.listeners, taken...)
			return nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return errBind.Wrap(err, p.Guest, netip.AddrPortFrom(p.addresses()[0], number))
}

// findFreePort returns a port of an address that is free at the moment.
func findFreePort(addr netip.Addr) (uint16, error) {
	handle, err := bindSocket(netip.AddrPortFrom(addr, 0))
	if err != nil {
		return 0, err
	}
	defer unix.Close(handle)
	name, err := unix.Getsockname(handle)
	if err != nil {
		return 0, err
	}
	if a, ok := name.(*unix.SockaddrInet6); ok {
		return uint16(a.Port), nil
	}
	return uint16(name.(*unix.SockaddrInet4).Port), nil
}

// bindAddresses takes a port of all addresses. A host need not have IPv6, unless its address
// was named.
func bindAddresses(p Port, number uint16) (list []*listener, err error) {
	for _, addr := range p.addresses() {
		address := netip.AddrPortFrom(addr, number)
		handle, err := bindSocket(address)
		if err != nil && len(list) > 0 && !errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			for _, l := range list {
				_ = unix.Close(l.handle)
			}
			return nil, err
		}
		list = append(list, &listener{handle: handle, address: address, port: p})
	}
	return list, nil
}

// bindSocket makes a socket with an address.
func bindSocket(address netip.AddrPort) (handle int, err error) {
	family, name := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(address.Port()), Addr: [4]byte(address.Addr().AsSlice())})
	if address.Addr().Is6() {
		family, name = unix.AF_INET6, &unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()}
	}
	handle, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(handle, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(handle, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(handle, name)
	}
	if err != nil {
		_ = unix.Close(handle)
		return -1, err
	}
	return handle, nil
}

// Addresses are the addresses of the host on which a port of the guest is published.
func (h *Host) Addresses(p Port) (list []netip.AddrPort) {
	for _, l := range h.listeners {
		if l.port == p {
			list = append(list, l.address)
		}
	}
	return list
}

// Poll carries over what the host has for the guest and the guest for the host. It does not
// wait.
func (h *Host) Poll(g Guest) error {
	h.renewEnds(g)
	for _, l := range h.listeners {
		if err := h.follow(l, g.ListensFor(l.port.Guest)); err != nil {
			return errListen.Wrap(err, l.address)
		}
	}
	if err := h.collect(); err != nil {
		return err
	}
	for _, l := range h.listeners {
		if err := h.accept(l, g); err != nil {
			return errListen.Wrap(err, l.address)
		}
	}
	over := false
	for _, l := range h.links {
		l.step(h.buffer, g.Act)
		over = over || l.state == closed
	}
	if over {
		h.links = slices.DeleteFunc(h.links, h.forget)
	}
	return nil
}

// renewEnds finds the guest's ends of the connections.
func (h *Host) renewEnds(g Guest) {
	for _, l := range h.links {
		if end := g.End(l.number); end != nil {
			l.end = end
		}
	}
}

// Ready reports whether the host has something for Poll.
func (h *Host) Ready() bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(h.epoll), Events: unix.POLLIN}}, 0)
	return n > 0
}

// forget reports whether a link is closed, of which nothing is kept then.
func (h *Host) forget(l *link) bool {
	if l.state == closed {
		delete(h.byHandle, int32(l.conn.(*hostConn).handle))
	}
	return l.state == closed
}

// follow has a listener listen if the guest does.
func (h *Host) follow(l *listener, listens bool) error {
	switch {
	case listens == l.listening:
		return nil
	case listens:
		if err := unix.Listen(l.handle, backlog); err != nil {
			return err
		}
		l.listening, l.ready = true, true
		return h.watch(l.handle, unix.EPOLLIN|unix.EPOLLET)
	}
	l.listening, l.ready = false, false
	if err := unix.EpollCtl(h.epoll, unix.EPOLL_CTL_DEL, l.handle, nil); err != nil {
		return err
	}
	return unix.Shutdown(l.handle, unix.SHUT_RD) // the socket keeps its address
}

// collect takes the host's announcements.
func (h *Host) collect() error {
	for {
		n, err := unix.EpollWait(h.epoll, h.events[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range h.events[:n] {
			h.note(&h.events[i])
		}
		if n < len(h.events) {
			return nil
		}
	}
}

func (h *Host) note(e *unix.EpollEvent) {
	if l := h.byHandle[e.Fd]; l != nil {
		l.readable = l.readable || e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		l.writable = l.writable || e.Events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0
		l.failed = l.failed || e.Events&unix.EPOLLERR != 0
		return
	}
	for _, l := range h.listeners {
		if int32(l.handle) == e.Fd {
			l.ready = true
		}
	}
}

// accept takes the connections that wait at a listener. If the host has no descriptor or memory
// for another one, they wait until it has.
func (h *Host) accept(l *listener, g Guest) error {
	for l.listening && l.ready {
		handle, _, err := unix.Accept4(l.handle, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			l.ready = false
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		case err != nil:
			return err
		}
		// The guest's programs decide how they divide their output.
		_ = unix.SetsockoptInt(handle, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		if err := h.watch(handle, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET); err != nil {
			_ = unix.Close(handle)
			return err
		}
		h.accepted++
		g.Act(event.Client{Op: event.ClientConnects, Connection: h.accepted, Port: l.port.Guest})
		x := newLink(h.accepted, l.port.Guest, &hostConn{handle}, g.End(h.accepted))
		h.links = append(h.links, x)
		h.byHandle[int32(handle)] = x
	}
	return nil
}

// Forever is a time for Wait that has no end.
const Forever time.Duration = -1

// Wait waits until the host has something for Poll, or for a time, or until Interrupt is called.
// It returns how long it has waited.
func (h *Host) Wait(most time.Duration) time.Duration {
	var limit *unix.Timespec
	if most >= 0 {
		t := unix.NsecToTimespec(int64(most))
		limit = &t
	}
	start := time.Now()
	// An error, as of a signal, ends the waiting early.
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(h.epoll), Events: unix.POLLIN}}, limit, nil)
	return time.Since(start)
}

// Interrupt ends a call of Wait and all later ones. It may be called by any goroutine, also
// after Close.
func (h *Host) Interrupt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupted = true
	if h.wake >= 0 {
		_, _ = unix.Write(h.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (h *Host) isInterrupted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.interrupted
}

// Patience is how long Finish waits for clients that take nothing.
const Patience = 5 * time.Second

// Finish ends all connections, after the guest has ended: no client can connect any more, and
// those that have are given what the guest has sent. It returns how many bytes could not be
// delivered, because of Interrupt or because no client took any for a time.
func (h *Host) Finish(g Guest, patience time.Duration) (lost int) {
	h.renewEnds(g)
	for _, l := range h.listeners {
		_ = unix.Close(l.handle)
	}
	h.listeners = nil
	idle, last := time.Duration(0), h.pendingBytes()
	for h.deliverRest(g) && !h.isInterrupted() {
		left := h.pendingBytes()
		if left < last {
			idle, last = 0, left
		}
		if idle >= patience {
			break
		}
		idle += h.Wait(patience - idle)
		_ = h.collect() // what it does not announce is not delivered
	}
	for _, l := range h.links {
		lost += l.end.Pending()
		l.finish()
	}
	h.links = nil
	return lost
}

// deliverRest delivers what the clients take now, and reports whether any is left.
func (h *Host) deliverRest(g Guest) bool {
	left := true
	for moved := true; moved && left; {
		before := h.pendingBytes()
		left = false
		for _, l := range h.links {
			l.deliver(h.buffer, g.Act)
			left = left || l.state != closed && l.end.Pending() > 0
		}
		moved = h.pendingBytes() < before
	}
	return left
}

func (h *Host) pendingBytes() (n int) {
	for _, l := range h.links {
		if l.state != closed {
			n += l.end.Pending()
		}
	}
	return n
}

// Close frees all. Connections that are still there are reset.
func (h *Host) Close() {
	for _, l := range h.listeners {
		_ = unix.Close(l.handle)
	}
	for _, l := range h.links {
		l.conn.Reset()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, handle := range []int{h.wake, h.epoll} {
		if handle >= 0 {
			_ = unix.Close(handle)
		}
	}
	h.listeners, h.links, h.wake, h.epoll = nil, nil, -1, -1
}
