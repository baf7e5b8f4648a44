package gdbserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Ending says how GDB left a session.
type Ending uint8

// Ways to leave.
const (
	Detached Ending = iota // the run may continue
	Ended                  // killed by GDB, or over
)

// Session is one connection of GDB.
type Session struct {
	target  Target
	wire    wire
	packets chan string
	failed  chan error

	// general and stepped are the threads that later packets concern; 0: any.
	general, stepped int32
	over             bool
	ending           Ending
}

// Serve answers GDB at the other end of a connection until it leaves. The
// caller closes the connection.
func Serve(conn io.ReadWriter, target Target) (Ending, error) {
	s := &Session{
		target: target, wire: wire{r: bufio.NewReader(conn), w: conn, acks: true},
		packets: make(chan string), failed: make(chan error, 1), ending: Detached,
	}
	done := make(chan struct{})
	defer close(done)
	go s.receive(done)
	for !s.over {
		select {
		case p := <-s.packets:
			if err := s.answerPacket(p); err != nil {
				return s.ending, err
			}
		case err := <-s.failed:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return s.ending, err
		}
	}
	return s.ending, nil
}

// receive reads packets, also while the target runs, since one may be the interrupt.
func (s *Session) receive(done <-chan struct{}) {
	for {
		p, err := s.wire.readPacket()
		if err != nil {
			s.failed <- err
			return
		}
		if p == "QStartNoAckMode" {
			s.wire.acks = false
		}
		select {
		case s.packets <- p:
		case <-done:
			return
		}
	}
}

// isInterrupted reports whether GDB asks a run to stop, or has disconnected.
func (s *Session) isInterrupted() bool {
	select {
	case p := <-s.packets:
		return p == string(rune(interrupt))
	case err := <-s.failed:
		s.failed <- err
		return true
	default:
		return false
	}
}

// answerPacket answers one packet.
func (s *Session) answerPacket(p string) error {
	answer, err := s.answerText(p)
	if err != nil {
		return err
	}
	if p == "k" {
		return nil // which has no answer
	}
	return s.wire.writePacket(answer)
}

// failure is the answer to a packet that cannot be carried out.
const failure = "E01"

// answerText returns the answer to a packet; it is empty for an unknown packet.
func (s *Session) answerText(p string) (string, error) {
	if p == "" {
		return "", nil
	}
	rest := p[1:]
	switch p[0] {
	case '?':
		return s.stopReply(s.target.Current()), nil
	case 'g':
		return s.registersText(), nil
	case 'p':
		return s.registerText(rest), nil
	case 'm':
		return s.memoryText(rest), nil
	case 'G', 'P', 'M', 'X':
		return failure, nil // the run is not to be changed
	case 'H':
		return s.selectThread(rest), nil
	case 'T':
		return s.liveText(rest), nil
	case 'Z', 'z':
		return s.changePoint(rest, p[0] == 'Z'), nil
	case 'c', 'C':
		return s.move(Motion{})
	case 's', 'S':
		return s.move(Motion{Step: true, Thread: s.threadOrCurrent(s.stepped)})
	case 'b':
		return s.moveBack(rest)
	case 'D':
		s.over, s.ending = true, Detached
		return "OK", nil
	case 'k':
		s.over, s.ending = true, Ended
		return "", nil
	case 'v':
		return s.answerVerbose(rest)
	case 'q', 'Q':
		return s.answerQuery(p), nil
	}
	return "", nil
}

// threadOrCurrent returns a thread; 0 and -1 stand for the one that stopped.
func (s *Session) threadOrCurrent(id int32) int32 {
	if id > 0 {
		return id
	}
	return s.target.Current().Thread
}

func (s *Session) registersText() string {
	var r Registers
	if !s.target.Registers(s.threadOrCurrent(s.general), &r) {
		return failure
	}
	return r.encodeAll()
}

func (s *Session) registerText(rest string) string {
	number, err := strconv.ParseUint(rest, 16, 32)
	if err != nil {
		return failure
	}
	var r Registers
	if !s.target.Registers(s.threadOrCurrent(s.general), &r) {
		return failure
	}
	text, ok := r.encodeOne(number)
	if !ok {
		return failure
	}
	return text
}

// parsePair parses two hexadecimal numbers with a comma.
func parsePair(text string) (a, b uint64, ok bool) {
	x, y, found := strings.Cut(text, ",")
	a, err1 := strconv.ParseUint(x, 16, 64)
	b, err2 := strconv.ParseUint(y, 16, 64)
	return a, b, found && err1 == nil && err2 == nil
}

func (s *Session) memoryText(rest string) string {
	at, size, ok := parsePair(rest)
	if !ok {
		return failure
	}
	b := make([]byte, min(size, maxPacket/2))
	n := s.target.Read(arch.Addr(at), b)
	if n == 0 && size > 0 {
		return failure
	}
	return fmt.Sprintf("%x", b[:n])
}

func parseThread(text string) (int32, bool) {
	if text == "-1" {
		return -1, true
	}
	id, err := strconv.ParseUint(text, 16, 31)
	return int32(id), err == nil
}

func (s *Session) selectThread(rest string) string {
	if rest == "" {
		return failure
	}
	id, ok := parseThread(rest[1:])
	if !ok {
		return failure
	}
	if id > 0 && !s.isLive(id) {
		return failure
	}
	if rest[0] == 'c' {
		s.stepped = id
	} else {
		s.general = id
	}
	return "OK"
}

func (s *Session) isLive(id int32) bool {
	for _, t := range s.target.Threads() {
		if t.ID == id {
			return true
		}
	}
	return false
}

func (s *Session) liveText(rest string) string {
	if id, ok := parseThread(rest); ok && s.isLive(id) {
		return "OK"
	}
	return failure
}

// changePoint answers Z and z: kind, address and length.
func (s *Session) changePoint(rest string, insert bool) string {
	kind, place, found := strings.Cut(rest, ",")
	k, err := strconv.ParseUint(kind, 16, 8)
	if err != nil || !found || k > uint64(WatchAccess) {
		return ""
	}
	place, _, _ = strings.Cut(place, ";") // conditions were not offered
	at, size, ok := parsePair(place)
	if !ok {
		return failure
	}
	p := Point{PointKind(k), arch.Addr(at), size}
	if insert {
		s.target.Insert(p)
	} else {
		s.target.Remove(p)
	}
	return "OK"
}

func (s *Session) moveBack(rest string) (string, error) {
	switch rest {
	case "c":
		return s.move(Motion{Back: true})
	case "s":
		return s.move(Motion{Back: true, Step: true, Thread: s.threadOrCurrent(s.stepped)})
	}
	return "", nil
}

func (s *Session) move(m Motion) (string, error) {
	stop, err := s.target.Go(m, s.isInterrupted)
	if err != nil {
		return "", err
	}
	s.general = 0
	return s.stopReply(stop), nil
}

// answerVerbose answers packets with names that begin with v.
func (s *Session) answerVerbose(rest string) (string, error) {
	switch {
	case rest == "Cont?":
		return "vCont;c;C;s;S", nil
	case strings.HasPrefix(rest, "Cont;"):
		m, ok := s.parseMotion(rest[len("Cont;"):])
		if !ok {
			return failure, nil
		}
		return s.move(m)
	case strings.HasPrefix(rest, "Kill"):
		s.over, s.ending = true, Ended
		return "OK", nil
	}
	return "", nil
}

// parseMotion translates the actions of vCont for a run that has one order: a step of some
// thread, or the continuation of all. False: an action is unknown.
func (s *Session) parseMotion(actions string) (Motion, bool) {
	m := Motion{}
	for _, a := range strings.Split(actions, ";") {
		action, thread, threads := strings.Cut(a, ":")
		id, ok := parseThread(thread)
		switch {
		case action == "", threads && !ok, !strings.ContainsRune("cCsS", rune(action[0])):
			return m, false
		case action[0] == 's' || action[0] == 'S':
			return Motion{Step: true, Thread: s.threadOrCurrent(id)}, true
		}
	}
	return m, true
}

// stopReply returns the reply for a stop.
func (s *Session) stopReply(stop Stop) string {
	signal := stop.Signal
	switch stop.Reason {
	case Exited:
		s.ending = Ended
		return fmt.Sprintf("W%02x", stop.Code&0xff)
	case Killed:
		s.ending = Ended
		return fmt.Sprintf("X%02x", gdbSignal(stop.Signal))
	case Signalled:
	default:
		signal = sigtrap
	}
	text := fmt.Sprintf("T%02xthread:%x;", gdbSignal(signal), stop.Thread)
	switch stop.Reason {
	case AtBreak:
		if stop.Point.Kind == HardwareBreak {
			return text + "hwbreak:;"
		}
		return text + "swbreak:;"
	case AtWatch:
		name := map[PointKind]string{WatchWrite: "watch", WatchRead: "rwatch", WatchAccess: "awatch"}[stop.Point.Kind]
		return fmt.Sprintf("%s%s:%x;", text, name, uint64(stop.Point.Addr))
	case Executed:
		return fmt.Sprintf("%sexec:%x;", text, s.target.Program())
	case AtBeginning:
		return text + "replaylog:begin;"
	case AtEnd:
		return text + "replaylog:end;"
	}
	return text
}

const sigtrap = 5

// gdbSignal returns GDB's number of a Linux signal (include/gdb/signals.def); the two agree for
// most signals that stop programs.
func gdbSignal(n int) int {
	if other, ok := map[int]int{7: 10, 10: 30, 12: 31, 17: 20, 18: 19, 19: 17, 20: 18, 23: 16, 29: 23, 30: 32, 31: 12}[n]; ok {
		return other
	}
	return n
}
