package sweep

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

// maxGenerated is the largest input that is generated.
const maxGenerated job.Size = 16 << 30

// generators make the contents of inputs from a seed. Each is a function of
// its seed alone: it takes numbers straight from the PCG source, whose sequence
// Go promises to keep.
var generators = []struct {
	name  string
	write func(w *bufio.Writer, size uint64, source *rand.PCG)
}{
	{"text", writeText},
	{"numbers", writeNumbers},
	{"random", writeRandom},
	{"zeros", writeZeros},
}

// GeneratorNames lists the values of Input.Generate: "text" is lines of words
// of an invented language, some far more frequent than others, which compress
// like prose; "numbers" is a random decimal number on each line; "random" is
// random bytes; "zeros" is zero bytes.
func GeneratorNames() []string {
	var names []string
	for _, g := range generators {
		names = append(names, g.name)
	}
	return names
}

// errFull ends a generator when the file has its size.
var errFull = form("the file has its size")

// limited passes on a limited number of bytes and then fails.
type limited struct {
	w    io.Writer
	left uint64
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(uint64(len(p)), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	if l.left == 0 {
		return int(n), errFull
	}
	return len(p), nil
}

// writeGenerated writes the input's bytes.
func (in Input) writeGenerated(w io.Writer) error {
	for _, g := range generators {
		if g.name != in.Generate {
			continue
		}
		buffer := bufio.NewWriterSize(&limited{w, uint64(in.Size)}, 1<<16)
		g.write(buffer, uint64(in.Size), rand.NewPCG(in.Seed, 0))
		if err := buffer.Flush(); err != errFull {
			return err
		}
	}
	return nil
}

func writeText(w *bufio.Writer, size uint64, source *rand.PCG) {
	words := vocabulary(source)
	column := 0
	for written := uint64(0); written < size; {
		// The product of two uniform numbers favours the front of the list.
		r := source.Uint64()
		word := words[(r>>32)%uint64(len(words))*(r&0xffff)>>16]
		_, _ = w.WriteString(word)
		separator := byte(' ')
		if column += len(word) + 1; column > 72 {
			separator, column = '\n', 0
		}
		_ = w.WriteByte(separator)
		written += uint64(len(word)) + 1
	}
}

// vocabulary invents words out of syllables.
func vocabulary(source *rand.PCG) []string {
	const consonants, vowels = "bdfghklmnprstvwz", "aeiou"
	words := make([]string, 4000)
	for i := range words {
		r := source.Uint64()
		for n := 1 + r%4; n > 0; n-- {
			words[i] += string(consonants[(r>>8)%16]) + string(vowels[(r>>16)%5])
			r = source.Uint64()
		}
	}
	return words
}

func writeNumbers(w *bufio.Writer, size uint64, source *rand.PCG) {
	var line []byte
	for written := uint64(0); written < size; written += uint64(len(line)) {
		line = append(strconv.AppendUint(line[:0], source.Uint64()%1_000_000_000, 10), '\n')
		_, _ = w.Write(line)
	}
}

func writeRandom(w *bufio.Writer, size uint64, source *rand.PCG) {
	for written := uint64(0); written < size; written += 8 {
		for r, i := source.Uint64(), 0; i < 8; i++ {
			_ = w.WriteByte(byte(r >> (8 * i)))
		}
	}
}

func writeZeros(w *bufio.Writer, size uint64, _ *rand.PCG) {
	for range size {
		_ = w.WriteByte(0)
	}
}

// prepareInputs makes the missing input files in the folder,
// and returns their digests by name.
func (x *Experiment) prepareInputs(dir string) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errInputs.Wrap(err, dir)
	}
	// Shards that start at the same time make the inputs one after the other, where the file system has locks.
	if folder, err := os.Open(dir); err == nil {
		defer folder.Close()
		_ = unix.Flock(int(folder.Fd()), unix.LOCK_EX)
	}
	digests := map[string]string{}
	for _, in := range x.Inputs {
		path := filepath.Join(dir, in.Name)
		if err := in.MakeFile(path); err != nil {
			return nil, errInputs.Wrap(err, path)
		}
		var err error
		if digests[in.Name], err = fileDigest(path); err != nil {
			return nil, errInputs.Wrap(err, path)
		}
	}
	return digests, x.removeOthers(dir)
}

// MakeFile writes the file, unless it is right: another sweep, or another shard of this one, may be
// reading it, and its programs would see a file that is being written beside it.
func (in Input) MakeFile(path string) (err error) {
	if in.isMade(path) {
		return nil
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	file, err := outfile.Create(path)
	if err != nil {
		return err
	}
	defer file.Discard()
	mode := os.FileMode(0o644)
	if in.File != "" {
		mode, err = copyFile(file, in.File)
	} else {
		err = in.writeGenerated(file)
	}
	if err := errors.Join(err, file.Chmod(mode)); err != nil {
		return err
	}
	return file.Commit()
}

// isMade reports whether the file has the contents and the mode of the input: one that was changed or cut short
// has not.
func (in Input) isMade(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	c := &comparer{with: bufio.NewReaderSize(file, 1<<16)}
	mode := os.FileMode(0o644)
	if in.File != "" {
		mode, err = copyFile(c, in.File)
	} else {
		err = in.writeGenerated(c)
	}
	return err == nil && c.isAtEnd() && info.Mode() == mode
}

// comparer is a writer that fails at the first difference to a file.
type comparer struct {
	with   *bufio.Reader
	buffer []byte
}

const errDiffers = form("the file differs")

func (c *comparer) Write(p []byte) (int, error) {
	c.buffer = append(c.buffer[:0], p...)
	if _, err := io.ReadFull(c.with, c.buffer); err != nil || !bytes.Equal(c.buffer, p) {
		return 0, errDiffers
	}
	return len(p), nil
}

func (c *comparer) isAtEnd() bool {
	_, err := c.with.ReadByte()
	return err == io.EOF
}

// copyFile returns the mode that the copy should have: that of a program, or
// of a plain file.
func copyFile(to io.Writer, path string) (os.FileMode, error) {
	from, err := os.Open(path)
	if err != nil {
		return 0o644, err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return 0o644, err
	}
	mode := os.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	_, err = io.Copy(to, from)
	return mode, err
}

// removeOthers removes files that are no inputs: programs would see them.
func (x *Experiment) removeOthers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errInputs.Wrap(err, dir)
	}
	for _, entry := range entries {
		keep := false
		for _, in := range x.Inputs {
			keep = keep || in.Name == entry.Name()
		}
		if keep {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return errInputs.Wrap(err, dir)
		}
	}
	return nil
}
