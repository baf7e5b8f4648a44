package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/internal/errname"
	"github.com/heddle-dmt/heddle/internal/machine/streams"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// digest hashes the events of a run, in order, and counts them. It is the kernel's observer.
// Only numbers of the guest enter the digests.
type digest struct {
	host     *streams.Host
	events   *hasher
	schedule *hasher
	output   *hasher
	stdout   *hasher

	memory  []uint64                 // digests of memory at the end, by process
	threads map[arch.ThreadID]uint64 // instructions of each

	thread       arch.ThreadID // whose turn it is
	inside       uint8         // accesses that are done of the instruction that it is inside
	turnLength   uint64        // instructions of the turn so far
	instructions uint64
	turns        uint64
	written      [3]int64 // bytes that the host took, by descriptor

	refusedLevel bool // glibc has refused a program or a library because of the processor's level
}

func newDigest(host *streams.Host) *digest {
	return &digest{
		host: host, thread: arch.NoThread, events: &hasher{}, schedule: &hasher{}, output: &hasher{}, stdout: &hasher{},
		threads: map[arch.ThreadID]uint64{},
	}
}

// hasher is a hash that is being computed. The state of the library can be copied as it is.
type hasher struct{ xxh3.Hasher }

// CopyForSnapshot copies the hash so far.
func (h *hasher) CopyForSnapshot(*deepcopy.Copier) any {
	n := *h
	return &n
}

// hashWords adds numbers to a hash.
func hashWords(h *hasher, list ...uint64) {
	var b [8 * 10]byte
	for i, w := range list {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	_, _ = h.Write(b[:8*len(list)])
}

// beginQuantum begins a quantum of a thread. Quanta of one thread without another between them
// are one turn.
func (d *digest) beginQuantum(t arch.ThreadID) {
	if t == d.thread {
		return
	}
	d.endTurn()
	d.thread = t
	d.turns++
}

func (d *digest) countQuantum(instructions uint64, inside uint8) {
	d.inside = inside
	d.turnLength += instructions
	d.instructions += instructions
	d.threads[d.thread] += instructions
}

func (d *digest) endTurn() {
	if d.thread == arch.NoThread {
		return
	}
	hashWords(d.schedule, uint64(d.thread), d.turnLength)
	hashWords(d.events, 1, uint64(d.thread), d.turnLength)
	if d.host.EventLog != nil {
		d.log("turn thread %d instructions %d%s", d.thread, d.turnLength, insideText(d.inside))
	}
	if d.inside > 0 {
		hashWords(d.schedule, 6, uint64(d.inside))
		hashWords(d.events, 6, uint64(d.inside))
	}
	d.inside = 0
	d.turnLength = 0
}

// insideText names the place inside an instruction at which a turn ended, if it did.
func insideText(accesses uint8) string {
	if accesses == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d accesses of the next", accesses)
}

// log writes a line of the event log, if there is one.
func (d *digest) log(format string, args ...any) {
	if d.host.EventLog != nil {
		d.host.PrintLine(d.host.EventLog, format+"\n", args...)
	}
}

// Syscall implements kernel.Observer.
func (d *digest) Syscall(t *kernel.Task, number uint64, a [6]uint64, ret uint64) {
	hashWords(d.events, 2, uint64(t.ID()), number, a[0], a[1], a[2], a[3], a[4], a[5], ret)
	if d.host.EventLog == nil && d.host.Strace == nil {
		return
	}
	line := t.Trace(number, a, ret)
	d.log("syscall thread %d after %d %s", t.ID(), d.turnLength, line)
	if d.host.Strace != nil {
		d.host.PrintLine(d.host.Strace, "[%d] %s\n", t.ID(), line)
	}
}

// Signal notes the delivery of a signal.
func (d *digest) Signal(t arch.ThreadID, signal int) {
	hashWords(d.events, 3, uint64(t), uint64(signal))
	d.log("signal thread %d number %d", t, signal)
	if d.host.Strace != nil {
		d.host.PrintLine(d.host.Strace, "[%d] --- signal %d ---\n", t, signal)
	}
}

// Exit implements kernel.Observer.
func (d *digest) Exit(t arch.ThreadID, status int) {
	hashWords(d.events, 4, uint64(t), uint64(status))
	d.log("exit thread %d status %#x", t, status)
}

// Memory implements kernel.Observer.
func (d *digest) Memory(process int32, sum [16]byte) {
	d.memory = append(d.memory, uint64(process), binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
	hashWords(d.events, 5, uint64(process))
	_, _ = d.events.Write(sum[:])
	d.log("memory process %d digest %x", process, sum)
}

// countOperation counts an operation of a client, with the bytes that it takes.
func (d *digest) countOperation(e *event.Client, taken []byte) {
	hashWords(d.events, 7, uint64(e.Op), e.Connection, uint64(e.Port), e.Size)
	_, _ = d.events.Write(e.Data)
	_, _ = d.events.Write(taken)
	d.log("client %d %v %d", e.Connection, e.Op, e.Size)
}

// countRest counts bytes of the guest that no client has taken at the end.
func (d *digest) countRest(connection uint64, bytes []byte) {
	hashWords(d.events, 8, connection, uint64(len(bytes)))
	_, _ = d.events.Write(bytes)
	d.log("client %d has not taken %d", connection, len(bytes))
}

// Write implements vfs.Sink.
func (d *digest) Write(fd int, p []byte) (int, unix.Errno) {
	d.refusedLevel = d.refusedLevel || fd == 2 && refusesLevel(p)
	n, errno := d.host.WriteStream(fd, p, d.written[fd])
	if n > 0 || errno == 0 {
		hashWords(d.output, uint64(fd), uint64(n))
		_, _ = d.output.Write(p[:n])
		if fd == unix.Stdout {
			_, _ = d.stdout.Write(p[:n])
		}
		d.written[fd] += int64(n)
	}
	return n, errno
}

// Broken implements vfs.Sink.
func (d *digest) Broken(fd int) bool {
	f := d.host.FaultOf(fd)
	return f != nil && f.Errno == errname.Name(unix.EPIPE) && d.written[fd] >= f.Bytes
}

// stateDigest returns the digest of the state that does not depend on the order of events.
func (d *digest) stateDigest(r *Result) string {
	h := &hasher{}
	hashWords(h, uint64(r.ExitCode), uint64(r.Signal))
	_, _ = h.WriteString(r.OutputDigest + r.Outcome.String())
	for _, id := range slices.Sorted(maps.Keys(d.threads)) {
		hashWords(h, uint64(id), d.threads[id])
	}
	for i := 0; i < len(d.memory); i += 3 {
		hashWords(h, d.memory[i:i+3]...)
	}
	return hashText(h)
}

// StdoutDigest returns the digest of a run that writes the given bytes to standard output.
func StdoutDigest(text []byte) string {
	h := &hasher{}
	_, _ = h.Write(text)
	return hashText(h)
}

func hashText(h *hasher) string {
	s := h.Sum128().Bytes()
	return fmt.Sprintf("%x", s)
}
