package vfs

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Input is a file of the host that the guest has read.
type Input struct {
	Path   string // on the host; "-" is standard input
	SHA256 string // of the whole file, in hexadecimal
}

// Inputs lists the host files that were read, sorted by path, but for those of which
// copies of this file system alone, or what it was before it was put back to a
// snapshot, have read. Each is read in
// full for its hash, so this comes once, at the end of a run; later calls return
// the same list. Commit calls it before it changes anything. It fails if a host
// file was noticed to change while the guest could see it.
func (fs *FS) Inputs() ([]Input, error) {
	h := fs.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hashes != nil {
		return h.hashes, nil
	}
	if h.changed != "" {
		return nil, errChanged.New(h.changed)
	}
	list := []Input{}
	for n := range h.inputs {
		if !fs.touched[n] {
			continue
		}
		sum, err := h.hash(n)
		if err != nil {
			return nil, errHash.Wrap(err, n.hostPath())
		}
		list = append(list, Input{n.hostPath(), sum})
	}
	if h.stdin != nil {
		if in, read := h.stdin.input(); read {
			list = append(list, in)
		}
	}
	slices.SortFunc(list, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	h.hashes = slices.Compact(list)
	return h.hashes, nil
}

// hash reads a host file in full.
func (h *Host) hash(n *lower) (string, error) {
	fd, errno := h.openAt(n, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errno != 0 {
		return "", errno
	}
	f := os.NewFile(uintptr(fd), n.name)
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hexSum(sum), nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
