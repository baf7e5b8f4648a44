// Package infile reads files that a user names. A file may be any other than the one that was
// meant, such as the image of a disk: no more of it is read than shows that.
package infile

import (
	"errors"
	"io"
	"os"
	"strings"
)

// largest is the size of the largest file that ReadSmall reads.
const largest = 64 << 20

// ErrLarge is the error of a file that ReadSmall does not read.
var ErrLarge = errors.New("it is larger than 64 MiB")

// ReadSmall reads a file of a kind that people write.
func ReadSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err == nil && len(text) > largest {
		return nil, ErrLarge
	}
	return text, err
}

// beginning is the number of bytes that ReadStarting returns of another file, at least.
const beginning = 32

// ReadStarting reads a file that starts with the given text, without a second copy of it. Of
// another file it returns only the beginning.
func ReadStarting(path, start string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	first := make([]byte, max(len(start), beginning))
	n, err := io.ReadFull(file, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	if !strings.HasPrefix(string(first[:n]), start) {
		return string(first[:n]), nil
	}
	var b strings.Builder
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		b.Grow(int(info.Size()))
	}
	b.Write(first[:n])
	_, err = io.CopyBuffer(&b, struct{ io.Reader }{file}, make([]byte, 1<<16))
	return b.String(), err
}
