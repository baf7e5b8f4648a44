package trace

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// A Twin is the text form of the records of a kind that is not this package's.
type Twin interface {
	// Lines iterates over the text of a chunk's records, as far as they are
	// selected.
	Lines(records iter.Seq2[[]byte, error], where Where) iter.Seq2[string, error]
}

// DumpOptions choose the output of Dump. The zero value writes everything, so that
// Load can read it.
type DumpOptions struct {
	// Kinds are the kinds of streams, all if empty.
	Kinds []Kind
	Where Where
	// Events leaves out the heads of chunks, which are no records. The kind comes
	// before each record instead.
	Events bool
	// Twins have the text form of other kinds, for Events; without one, and where
	// Load is to read it, records are shown as bytes.
	Twins map[Kind]Twin
}

const (
	textHeader = "heddle trace 1"
	perLine    = 32 // bytes of a stream of bytes
)

// Dump writes the text twin of a trace, chunk by chunk in the order of the file.
// It returns the damage that it found; the whole chunks are written.
func Dump(out io.Writer, r *Reader, o DumpOptions) []error {
	d := dumper{out: bufio.NewWriterSize(out, 1<<16), r: r, o: o}
	d.damage = append(d.damage, r.Damage()...)
	if !o.Events {
		d.printf("%s\n", textHeader)
	}
	if o.Events {
		d.dumpEvents()
	} else {
		for i := range r.chunks {
			d.dumpChunk(part{i, -1})
		}
	}
	if err := d.out.Flush(); err != nil {
		d.damage = append(d.damage, err)
	}
	return d.damage
}

type dumper struct {
	out    *bufio.Writer
	r      *Reader
	o      DumpOptions
	damage []error
}

func (d *dumper) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// dumpEvents dumps the records of the last timeline, stream by stream.
func (d *dumper) dumpEvents() {
	for _, key := range d.r.Streams() {
		for _, p := range d.r.timelineParts(key, d.r.timeline) {
			d.dumpChunk(p)
		}
	}
}

// dumpChunk dumps a chunk, if it has anything that is selected.
func (d *dumper) dumpChunk(p part) {
	c := &d.r.chunks[p.chunk]
	if len(d.o.Kinds) > 0 && !slices.Contains(d.o.Kinds, c.Kind) || !d.o.Where.mayHave(c) {
		return
	}
	if !d.o.Events {
		d.printf("%s\n", c.headText())
	}
	if c.Bytes {
		d.dumpBytes(c, p)
	} else {
		d.dumpRecords(c, p)
	}
}

func (d *dumper) dumpBytes(c *Chunk, p part) {
	raw, err := d.r.readPayload(p)
	if err != nil {
		d.damage = append(d.damage, err)
	}
	for piece := range slices.Chunk(raw, perLine) {
		d.linePrefix(c)
		d.out.Write(appendBytes([]byte("bytes "), piece))
		d.out.WriteByte('\n')
	}
}

// linePrefix names the stream of a line, where no head of a chunk does.
func (d *dumper) linePrefix(c *Chunk) {
	if d.o.Events {
		d.printf("%s %d ", c.Kind, c.ID)
	}
}

func (d *dumper) dumpRecords(c *Chunk, p part) {
	if twin := d.o.Twins[c.Kind]; twin != nil && d.o.Events {
		for text, err := range twin.Lines(d.r.recordsOf(p), d.o.Where) {
			if err != nil {
				d.damage = append(d.damage, err)
				return
			}
			d.linePrefix(c)
			d.printf("%s\n", text)
		}
		return
	}
	var b []byte
	for record, err := range d.r.recordsOf(p) {
		if err != nil {
			d.damage = append(d.damage, err)
			return
		}
		if !d.isSelected(c.Kind, record) {
			continue
		}
		d.linePrefix(c)
		b = append(recordText(b[:0], c.Kind, record), '\n')
		d.out.Write(b)
	}
}

func (d *dumper) isSelected(kind Kind, record []byte) bool {
	if d.o.Where == (Where{}) {
		return true
	}
	e := newEvent(kind)
	return e == nil || !decodeInto(e, record) || d.o.Where.Has(stampOf(e))
}

// headText is the head of a chunk in the text form.
func (c *Chunk) headText() string {
	var threads []string
	for _, t := range c.Threads {
		threads = append(threads, strconv.Itoa(int(t)))
	}
	return fmt.Sprintf("chunk kind=%s id=%d timeline=%d ordinal=%d first=%d bytes=%t seq=%d..%d sync=%d..%d time=%d..%d threads=%s",
		c.Kind, c.ID, c.Timeline, c.Ordinal, c.First, c.Bytes, c.Low.Seq, c.High.Seq, c.Low.Sync, c.High.Sync,
		c.Low.Time, c.High.Time, strings.Join(threads, ","))
}

// parseChunk is the opposite.
func parseChunk(text string) (c Chunk, err error) {
	words := strings.Fields(text)
	if len(words) != 11 {
		return c, fmt.Errorf("the head of a chunk has %d words, not 11", len(words))
	}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		if err := c.setField(name, value); err != nil {
			return c, err
		}
	}
	return c, nil
}

// setField takes one word of a chunk's head.
func (c *Chunk) setField(name, value string) error {
	var err error
	one := func() (n uint64) {
		n, err = strconv.ParseUint(value, 10, 64)
		return n
	}
	two := func() (low, high uint64) {
		_, err = fmt.Sscanf(value, "%d..%d", &low, &high)
		return low, high
	}
	switch name {
	case "kind":
		c.Kind = Kind(value)
	case "id":
		c.ID = uint32(one())
	case "timeline":
		c.Timeline = uint32(one())
	case "ordinal":
		c.Ordinal = one()
	case "first":
		c.First = one()
	case "bytes":
		c.Bytes, err = strconv.ParseBool(value)
	case "seq":
		c.Low.Seq, c.High.Seq = two()
	case "sync":
		c.Low.Sync, c.High.Sync = two()
	case "time":
		low, high := two()
		c.Low.Time, c.High.Time = arch.Cycles(low), arch.Cycles(high)
	case "threads":
		c.Threads, err = parseThreads(value)
	default:
		return fmt.Errorf("%s= in the head of a chunk", name)
	}
	if err != nil {
		return fmt.Errorf("%s=%s in the head of a chunk is no number of its kind", name, value)
	}
	return nil
}

func parseThreads(list string) (threads []arch.ThreadID, err error) {
	if list == "" {
		return nil, nil
	}
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, err
		}
		threads = append(threads, arch.ThreadID(n))
	}
	return threads, nil
}
