package memo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Admits tells why a run may not follow a portable schedule; empty: it may.
func Admits(c *heddle.Config, f *hybrid.File) string {
	set, err := preconditions.Parse(f.Preconditions, symbolic.NewPool())
	if err != nil {
		return err.Error()
	}
	checker, err := preconditions.NewChecker(set)
	if err != nil {
		return err.Error()
	}
	if why := surroundings(c, f, Sum); why != "" {
		return why
	}
	in := NewInput(c)
	defer in.Close()
	switch failed, shape := checker.Check(&in.Input); {
	case !shape:
		return "another number of arguments, or other variables"
	case failed >= 0:
		return "not " + set.Terms[failed].String()
	}
	return ""
}

// surroundings tells what besides the input is not as it was; sum is Sum.
func surroundings(c *heddle.Config, f *hybrid.File, sum func(path string) string) string {
	for _, x := range []struct {
		what            string
		found, expected any
	}{
		{"randomize_layout", c.RandomizeLayout, f.Layout},
		{"the memory model", c.Memory.MemoryModel().String(), f.Model},
		{"the program's SHA-256", sum(ProgramFile(c)), f.Program},
	} {
		if x.found != x.expected {
			return fmt.Sprintf("%s is %v, not %v", x.what, x.found, x.expected)
		}
	}
	if c.Dir != f.Dir && placed(f) {
		return fmt.Sprintf("the working folder is %s, not %s", c.Dir, f.Dir)
	}
	for _, in := range f.Inputs {
		if sum(in.Path) != in.SHA256 {
			return in.Path + " is not what it was"
		}
	}
	return ""
}

// placed tells whether the recorded run asked for its folder, or read a file there that
// no argument names.
func placed(f *hybrid.File) bool {
	return slices.ContainsFunc(f.Inputs, func(in hybrid.Input) bool { return strings.HasPrefix(in.Path, f.Dir+"/") }) ||
		slices.ContainsFunc(f.Schedule.Operations, func(o event.Operation) bool {
			return o.Part == event.SystemCall && o.Number == unix.SYS_GETCWD
		})
}

// Sum is the SHA-256 of a file, or empty if it cannot be read.
func Sum(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Enforce sets a configuration up to follow a schedule that admits it.
func Enforce(c *heddle.Config, f *hybrid.File, o sched.EnforceOptions) {
	schedules.BindNow(c)
	c.Enforce = &heddle.Enforce{Schedule: f.Schedule, Options: o, Seed: f.Seed, Cores: f.Cores}
}

// Input is what a run would be given, for checks. It must be closed.
type Input struct {
	preconditions.Input
	config *heddle.Config
	open   map[string]*content
}

// content is a file that pieces are read of as they are asked for.
type content struct {
	file  *os.File
	size  int64
	piece int64 // the number of the piece that is there; -1: none
	bytes []byte
	own   bool
}

const pieceBytes = 64 << 10

// NewInput makes the Input of a configuration.
func NewInput(c *heddle.Config) *Input {
	in := &Input{config: c, open: map[string]*content{}}
	bound := *c
	schedules.BindNow(&bound) // as Record does
	in.Args, in.Env, in.Open = c.Args, bound.Env, in.content
	return in
}

// Close closes the files that were looked at.
func (in *Input) Close() {
	for _, c := range in.open {
		if c != nil && c.own {
			c.file.Close()
		}
	}
}

// content opens a file by its name for symbols. What is no regular file is not known.
func (in *Input) content(name string) preconditions.Content {
	c, known := in.open[name]
	if !known {
		c = in.find(name)
		in.open[name] = c
	}
	if c == nil {
		return nil
	}
	return c
}

func (in *Input) find(name string) *content {
	if name == "stdin" {
		file, _ := in.config.Stdin.(*os.File)
		return newContent(file, false)
	}
	if n, ok := strings.CutPrefix(name, "argv["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(n, "]"))
		if err != nil || i >= len(in.config.Args) {
			return nil
		}
		name = hosts(in.config, in.config.Args[i])
	}
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	return newContent(file, true)
}

func newContent(file *os.File, own bool) *content {
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
	return &content{file: file, size: info.Size(), piece: -1, own: own}
}

// Size implements preconditions.Content.
func (c *content) Size() int64 { return c.size }

// ReadAt implements preconditions.Content.
func (c *content) ReadAt(p []byte, at int64) (int, error) {
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
