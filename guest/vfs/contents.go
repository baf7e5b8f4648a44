package vfs

import (
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"io"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// contents describes the bytes of a host file at the time when a guest opened it, or
// first read any of them. All reads use it: the manifest's hash is that of the bytes
// that the guest read, even if the file has changed since, and only bytes that were
// hashed are returned.
type contents struct {
	size   int64
	sha256 string // empty: see hash
	// kept has the bytes themselves. A file that is too large for that, where it is nil,
	// is read again.
	kept []byte
	// pages has a checksum of each page of a file that is not kept, by which a later
	// read is checked against the hashed bytes. Changes are accidents, not attacks: 64
	// bits are enough.
	pages []uint64
}

// Bytes of the host's files that are kept per run, so that later changes of the files
// do not matter, and the largest file that is kept: programs and libraries, but not all
// data that a program may process.
const (
	maxKeptFile = 4 << 20
	maxKept     = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pageSum is the checksum of a page, made of two 32-bit ones that processors have
// instructions for: one of 64 bits takes nine times as long.
func pageSum(p []byte) uint64 {
	return uint64(crc32.Checksum(p, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(p))
}

// errOtherBytes says that a file's bytes have changed.
var errOtherBytes = errors.New("other bytes than before")

// readFailure is the error for a file of the host whose bytes could not be returned. If
// the file has changed, the way that this was noticed adds nothing.
func readFailure(path string, err error) error {
	switch {
	case errors.Is(err, errOtherBytes):
		return errChanged.New(path)
	case lacksDescriptors(err):
		return errDescriptors.Wrap(err, path)
	}
	return errRead.Wrap(err, path)
}

// keepContents reads the first size bytes of a file and keeps them. It fails with
// errOtherBytes if there are fewer.
func keepContents(r io.ReaderAt, size int64) (*contents, error) {
	c := &contents{size: size, kept: make([]byte, size)}
	supplyPages(c.kept)
	if err := readFull(r, c.kept, 0); err != nil {
		return nil, err
	}
	return c, nil
}

// hash returns the hash of the bytes. That of kept bytes is computed at the first call: it takes as long
// as reading them, and not every run needs it.
func (c *contents) hash() string {
	if c.sha256 == "" {
		sum := sha256.New()
		sum.Write(c.kept)
		c.sha256 = hexSum(sum)
	}
	return c.sha256
}

// supplyPages has the host supply the pages of a large buffer that is about to be filled: one that it
// supplies when it is first written costs many times as much. Go aligns such buffers to pages. A failure
// does not matter.
func supplyPages(p []byte) {
	if n := len(p) / arch.PageSize * arch.PageSize; n > 16*arch.PageSize {
		_ = unix.Madvise(p[:n], unix.MADV_POPULATE_WRITE)
	}
}

// readContents is keepContents for a file that is read again when its bytes are needed.
func readContents(r io.ReaderAt, size int64) (*contents, error) {
	c := &contents{size: size}
	sum := sha256.New()
	buf := make([]byte, min(size, 256*arch.PageSize))
	for off := int64(0); off < size; {
		part := buf[:min(int64(len(buf)), size-off)]
		if err := readFull(r, part, off); err != nil {
			return nil, err
		}
		sum.Write(part)
		off += int64(len(part))
		for len(part) > 0 {
			n := min(len(part), arch.PageSize)
			c.pages = append(c.pages, pageSum(part[:n]))
			part = part[n:]
		}
	}
	c.sha256 = hexSum(sum)
	return c, nil
}

// readFull fills p. A file that ends earlier is errOtherBytes.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return errOtherBytes
	}
	return err
}

// readAt fills p from off on, with zeros past the end. It fails with errOtherBytes if
// the bytes are not the hashed ones.
func (c *contents) readAt(r io.ReaderAt, p []byte, off int64) error {
	n := max(0, min(int64(len(p)), c.size-off))
	clear(p[n:])
	if n == 0 {
		return nil
	}
	p = p[:n]
	if c.kept != nil {
		copy(p, c.kept[off:])
		return nil
	}
	first, end := off/arch.PageSize*arch.PageSize, min(c.size, (off+n+arch.PageSize-1)/arch.PageSize*arch.PageSize)
	buf := p
	if int64(len(p)) != end-first { // not whole pages
		buf = make([]byte, end-first)
	}
	if err := readFull(r, buf, first); err != nil {
		return err
	}
	for at := first; at < end; at += arch.PageSize {
		page := buf[at-first : min(at+arch.PageSize, end)-first]
		if pageSum(page) != c.pages[at/arch.PageSize] {
			return errOtherBytes
		}
	}
	copy(p, buf[off-first:])
	return nil
}
