package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// Load makes a trace again from the output of Dump with no options. The name is for
// errors.
func Load(out io.Writer, name string, in io.Reader) error {
	l := loader{w: NewWriter(out), name: name}
	lines := bufio.NewReaderSize(in, 1<<16)
	if start, _ := lines.Peek(len(textHeader)); string(start) != textHeader {
		return errors.Join(l.headerError(), l.w.Close())
	}
	err := l.loadAll(lines)
	if err != nil && !errors.Is(err, errText) {
		err = errText.Wrap(err, name, l.at, "the line cannot be read")
	}
	return errors.Join(err, l.w.Close())
}

type loader struct {
	w     *Writer
	name  string
	at    int // the line's number
	chunk *open
}

func (l *loader) loadAll(in *bufio.Reader) error {
	for {
		text, err := in.ReadString('\n')
		if err == io.EOF && text == "" {
			l.flushChunk()
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		l.at++
		if err := l.loadLine(strings.TrimSuffix(text, "\n")); err != nil {
			return err
		}
	}
}

func (l *loader) headerError() error {
	return errText.New(l.name, 1, "the first line is not \""+textHeader+"\"")
}

func (l *loader) loadLine(text string) error {
	switch {
	case l.at == 1:
		if text != textHeader {
			return l.headerError()
		}
		return nil
	case strings.HasPrefix(text, "chunk kind="):
		l.flushChunk()
		c, err := parseChunk(text)
		if err != nil {
			return errText.New(l.name, l.at, err)
		}
		l.chunk = &open{Chunk: c}
		return nil
	case l.chunk == nil:
		return errText.New(l.name, l.at, "there is no chunk for the line")
	}
	record, err := parseLine(l.chunk.Kind, text)
	if err != nil {
		return errText.New(l.name, l.at, err)
	}
	return l.appendRecord(record)
}

func (l *loader) appendRecord(record []byte) error {
	c := l.chunk
	if !c.Bytes {
		c.raw = binary.AppendUvarint(c.raw, uint64(len(record)))
		c.Records++
	}
	c.raw = append(c.raw, record...)
	if len(c.raw) > maxRaw {
		return errText.New(l.name, l.at, "the chunk is too large")
	}
	return nil
}

// flushChunk writes the chunk that is complete.
func (l *loader) flushChunk() {
	if l.chunk != nil {
		l.w.queue <- l.chunk
		l.chunk = nil
	}
}
