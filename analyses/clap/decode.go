package clap

import (
	"encoding/binary"
	"fmt"
	"iter"
	"sort"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Decode gives the addresses of the instructions that each thread executed of
// instrumented code, in its order.
func (l *Log) Decode(code Code) (map[arch.ThreadID]iter.Seq[uint64], error) {
	p := NewProgram(code, l.Facts)
	for _, entry := range l.Functions {
		if p.functionAt(entry) == nil {
			return nil, fmt.Errorf("there is no code at %#x, where a function is to begin", entry)
		}
	}
	all := map[arch.ThreadID]iter.Seq[uint64]{}
	for _, w := range l.Threads {
		d := &decoder{program: p, in: w.Records}
		if err := d.decodeRecords(); err != nil {
			return nil, fmt.Errorf("thread %d, byte %d of %d: %w", w.Thread, len(w.Records)-len(d.in), len(w.Records), err)
		}
		all[w.Thread] = d.yieldAddresses
	}
	return all, nil
}

// decoder reads the records of a thread like a bottom-up parser, since a path is written after
// those of the calls that it makes.
type decoder struct {
	program *Program
	in      []byte
	stack   []*call
	entered []entered
}

// call is a call of a function, as far as it is known.
type call struct {
	items []item
	// open is where the next path of the call begins; nil: it is over.
	open *Block
}

// item is a part of a block, or a call.
type item struct {
	block    *Block
	from, to int
	call     *call
}

func (d *decoder) decodeRecords() error {
	for len(d.in) > 0 {
		n, err := d.readNumber()
		switch {
		case err != nil:
		case n%2 == 0:
			err = d.decodePath(n / 2)
		case n == pieceRecord:
			err = d.decodePiece()
		case n == enteredRecord:
			err = d.decodeEntered()
		default:
			err = fmt.Errorf("record of kind %d", n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) readNumber() (uint64, error) {
	n, size := binary.Uvarint(d.in)
	if size <= 0 {
		return 0, fmt.Errorf("the record is cut")
	}
	d.in = d.in[size:]
	return n, nil
}

// decodePath reads a whole path.
func (d *decoder) decodePath(number uint64) error {
	all := d.program.functions
	i := sort.Search(len(all), func(i int) bool { return all[i].Base > number }) - 1
	if i < 0 || number-all[i].Base >= all[i].Paths {
		return fmt.Errorf("no function has the path %d", number)
	}
	w, err := all[i].followSum(number-all[i].Base, nil, nil)
	if err != nil {
		return err
	}
	return d.addPath(w, true)
}

// decodePiece reads a piece of a path.
func (d *decoder) decodePiece() error {
	var n [7]uint64
	for i := range n {
		var err error
		if n[i], err = d.readNumber(); err != nil {
			return err
		}
	}
	if n[0] >= uint64(len(d.program.functions)) {
		return fmt.Errorf("there is no function %d", n[0])
	}
	f := d.program.functions[n[0]]
	start, end := f.blockByNumber(n[1]), f.blockByNumber(n[2])
	w, err := f.followSum(n[3], start, end)
	if err != nil {
		return err
	}
	w.skip, w.done = int(n[4]), -1
	if end != nil {
		w.done = int(n[5])
	}
	return d.addPath(w, n[6] != 0)
}

// blockByNumber is a block by its number in a record, or nil.
func (f *Function) blockByNumber(n uint64) *Block {
	if n == 0 || n > uint64(len(f.Blocks)) {
		return nil
	}
	return f.Blocks[n-1]
}

func (d *decoder) decodeEntered() error {
	count, err := d.readNumber()
	for range count {
		var block, times uint64
		if block, err = d.readNumber(); err != nil {
			return err
		}
		if times, err = d.readNumber(); err != nil {
			return err
		}
		d.entered = append(d.entered, entered{int(block), int(times)})
	}
	return err
}

// pathWalk is a path, or a piece of one.
type pathWalk struct {
	blocks []*Block
	enter  *edge // nil: it does not begin where paths begin
	last   *edge // nil: it does not end where paths end
	skip   int
	done   int // -1: the last block as a whole
}

// followSum finds the path whose edges' numbers have a sum: from each block it takes the
// edge with the largest number that fits.
func (f *Function) followSum(sum uint64, start, end *Block) (*pathWalk, error) {
	w := &pathWalk{done: -1}
	at := start
	if at == nil {
		w.enter = largestEdge(f.entryEdges, sum)
		sum -= w.enter.value
		at = w.enter.to
	}
	for {
		w.blocks = append(w.blocks, at)
		if at == end {
			break
		}
		e := largestEdge(at.next, sum)
		sum -= e.value
		if e.endsPath() {
			w.last = e
			break
		}
		at = e.to
	}
	if sum != 0 || end != nil && at != end {
		return nil, fmt.Errorf("function at %#x: no path has the number", f.Entry)
	}
	return w, nil
}

// largestEdge is the edge with the largest number up to a sum.
func largestEdge(edges []*edge, sum uint64) *edge {
	return edges[sort.Search(len(edges), func(i int) bool { return edges[i].value > sum })-1]
}

// addPath adds a path to its call, with the calls that it made, which come before it. Last says
// that the last block's call made a frame, if it may.
func (d *decoder) addPath(w *pathWalk, last bool) error {
	var items []item // from the end
	take := func(times int) error {
		for range times {
			if len(d.stack) == 0 || d.stack[len(d.stack)-1].open != nil {
				return fmt.Errorf("a call is missing")
			}
			items = append(items, item{call: d.stack[len(d.stack)-1]})
			d.stack = d.stack[:len(d.stack)-1]
		}
		return nil
	}
	if e := w.last; e != nil && e.tail && e.instrumented {
		if err := take(1); err != nil {
			return err
		}
	}
	for i := len(w.blocks) - 1; i >= 0; i-- {
		b := w.blocks[i]
		if err := take(d.countCalls(w, i, last)); err != nil {
			return err
		}
		part := item{block: b, to: len(b.lengths)}
		if i == len(w.blocks)-1 && w.done >= 0 {
			part.to = w.done
		}
		if i == 0 {
			part.from = w.skip
		}
		items = append(items, part)
	}
	d.entered = nil
	return d.appendToCall(w, items)
}

// countCalls is how many calls a block of a path has made.
func (d *decoder) countCalls(w *pathWalk, i int, last bool) int {
	n := 0
	for _, e := range d.entered {
		if e.block == w.blocks[i].index {
			n += e.times
		}
	}
	if w.last == nil && i == len(w.blocks)-1 {
		if last {
			n++
		}
	} else if d.program.callsInstrumented(w.blocks[i]) {
		n++
	}
	return n
}

// appendToCall puts the items, which are in reverse, to the call that they continue.
func (d *decoder) appendToCall(w *pathWalk, items []item) error {
	c := &call{}
	if w.enter != nil && w.enter.afterBackEdge {
		if len(d.stack) == 0 || d.stack[len(d.stack)-1].open != w.enter.to {
			return fmt.Errorf("a path begins in a loop that was not entered")
		}
		c = d.stack[len(d.stack)-1]
	} else {
		d.stack = append(d.stack, c)
	}
	for i := len(items) - 1; i >= 0; i-- {
		c.items = append(c.items, items[i])
	}
	c.open = nil
	if w.last != nil && w.last.back {
		c.open = w.last.to
	}
	return nil
}

// yieldAddresses yields the addresses that the thread executed.
func (d *decoder) yieldAddresses(yield func(uint64) bool) {
	for _, c := range d.stack {
		if !c.yieldAddresses(yield) {
			return
		}
	}
}

func (c *call) yieldAddresses(yield func(uint64) bool) bool {
	for _, it := range c.items {
		if it.call != nil {
			if !it.call.yieldAddresses(yield) {
				return false
			}
			continue
		}
		at := it.block.Addr
		for i, n := range it.block.lengths[:it.to] {
			if i >= it.from && !yield(at) {
				return false
			}
			at += uint64(n)
		}
	}
	return true
}
