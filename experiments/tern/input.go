package tern

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Input is the input of a run, for checks. It must be closed.
type Input struct {
	preconditions.Input
	config *machine.Config
	open   map[string]*fileContent
}

// fileContent is a file that is read piece by piece, on demand, or the names in a folder, which have no file.
type fileContent struct {
	file  *os.File
	size  int64
	piece int64 // the number of the piece in bytes; -1: no piece
	bytes []byte
	own   bool
}

const pieceBytes = 64 << 10

// NewInput makes the Input of a configuration.
func NewInput(c *machine.Config) *Input {
	in := &Input{config: c, open: map[string]*fileContent{}}
	bound := *c
	peregrine.BindNow(&bound) // as Record does
	in.Args, in.Env, in.Open = c.Args, bound.Env, in.openContent
	return in
}

// Close closes the files that were read.
func (in *Input) Close() {
	for _, c := range in.open {
		if c != nil && c.own {
			c.file.Close()
		}
	}
}

// openContent opens a file by its name in symbols; nil: it is no regular file.
func (in *Input) openContent(name string) preconditions.Content {
	c, known := in.open[name]
	if !known {
		c = in.findContent(name)
		in.open[name] = c
	}
	if c == nil {
		return nil
	}
	return c
}

func (in *Input) findContent(name string) *fileContent {
	if name == "stdin" {
		file, _ := in.config.Stdin.(*os.File)
		return newFileContent(file, false)
	}
	host := hostPathOf(in.config, name)
	if strings.HasSuffix(name, "/") {
		list, err := listFolder(host)
		if err != nil {
			return nil
		}
		return &fileContent{size: int64(len(list)), bytes: list}
	}
	file, err := os.Open(host)
	if err != nil {
		return nil
	}
	return newFileContent(file, true)
}

func newFileContent(file *os.File, own bool) *fileContent {
	if file == nil {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		if own {
			file.Close()
		}
		return nil
	}
	return &fileContent{file: file, size: info.Size(), piece: -1, own: own}
}

// Size implements preconditions.Content.
func (c *fileContent) Size() int64 { return c.size }

// ReadAt implements preconditions.Content.
func (c *fileContent) ReadAt(p []byte, at int64) (int, error) {
	if c.file == nil {
		return bytes.NewReader(c.bytes).ReadAt(p, at)
	}
	if c.piece != at/pieceBytes {
		c.bytes = make([]byte, pieceBytes)
		n, err := c.file.ReadAt(c.bytes, at/pieceBytes*pieceBytes)
		if n == 0 {
			return 0, err
		}
		c.bytes, c.piece = c.bytes[:n], at/pieceBytes
	}
	if int(at%pieceBytes) >= len(c.bytes) {
		return 0, io.EOF
	}
	return copy(p, c.bytes[at%pieceBytes:]), nil
}
