package memtrace

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// inFlight is how many buffers are between the machine and the encoder. It is
// always as many, so that the appended bytes do not depend on how
// fast either is.
const inFlight = 8

// Writer encodes in a goroutine of its own and appends to a trace. It is for one
// goroutine, and must be closed.
type Writer struct {
	to      *trace.Stream
	jobs    chan job
	results chan result
	flying  int
	spare   []*memlog.Buffer
}

// job is a part of the log, or the wish to end the block.
type job struct {
	buffer  *memlog.Buffer
	start   event.Stamp
	counted uint64
}

type result struct {
	buffer *memlog.Buffer
	done   []coded
}

// NewWriter makes a Writer that appends to a stream of a trace.
func NewWriter(to *trace.Stream) *Writer { return &Writer{to: to} }

// SharedInSnapshot marks that copies of a machine's state share the trace.
func (w *Writer) SharedInSnapshot() {}

func (w *Writer) startEncoder() {
	w.jobs, w.results = make(chan job, inFlight), make(chan result, inFlight)
	go encodeJobs(w.jobs, w.results)
}

func encodeJobs(jobs <-chan job, results chan<- result) {
	e := NewEncoder()
	for j := range jobs {
		if j.buffer == nil {
			e.finishBlock()
		} else {
			e.Add(j.buffer, j.start, j.counted)
		}
		results <- result{j.buffer, e.done}
		e.done = nil
	}
	close(results)
}

// Take takes the engine's log. Start is the stamp of its
// begin, and counted the engine's count of branches there.
func (w *Writer) Take(cpu emu.CPU, start event.Stamp, counted uint64) {
	if cpu.LoggedMemory() == 0 {
		return
	}
	b := w.spareBuffer()
	cpu.SwapMemory(b)
	w.sendJob(job{b, start, counted})
}

func (w *Writer) spareBuffer() *memlog.Buffer {
	if len(w.spare) == 0 {
		return memlog.NewBuffer()
	}
	b := w.spare[len(w.spare)-1]
	w.spare = w.spare[:len(w.spare)-1]
	return b
}

func (w *Writer) sendJob(j job) {
	if w.jobs == nil {
		w.startEncoder()
	}
	if w.flying == inFlight {
		w.collectOldest()
	}
	w.jobs <- j
	w.flying++
}

// collectOldest appends the block of the oldest job.
func (w *Writer) collectOldest() {
	r := <-w.results
	w.flying--
	if r.buffer != nil {
		w.spare = append(w.spare, r.buffer)
	}
	appendBlocks(w.to, r.done)
}

// Flush ends the block and appends everything.
func (w *Writer) Flush() {
	if w.jobs == nil {
		return
	}
	w.sendJob(job{})
	for w.flying > 0 {
		w.collectOldest()
	}
}

// Close ends the encoder after a Flush.
func (w *Writer) Close() {
	w.Flush()
	if w.jobs != nil {
		close(w.jobs)
	}
	for _, b := range w.spare {
		b.Close()
	}
	w.jobs, w.spare = nil, nil
}
