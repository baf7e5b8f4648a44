package sweep

import (
	"bufio"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

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

// MakeFile writes the file anew and compares, so that one that was changed or cut
// short does not stay, and one that is right is not touched: another sweep may
// be reading it.
func (in Input) MakeFile(path string) (err error) {
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
	if sameFiles(path, file.Part()) {
		return nil
	}
	return file.Commit()
}

// sameFiles reports whether two files have the same contents and mode.
func sameFiles(a, b string) bool {
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	if errA != nil || errB != nil || infoA.Mode() != infoB.Mode() || infoA.Size() != infoB.Size() {
		return false
	}
	sumA, errA := fileDigest(a)
	sumB, errB := fileDigest(b)
	return errA == nil && errB == nil && sumA == sumB
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
