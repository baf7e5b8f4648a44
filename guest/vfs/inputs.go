package vfs

import (
	"encoding/hex"
	"hash"
	"slices"
	"strings"
)

// Input is a file of the host that the guest has read.
type Input struct {
	Path   string // on the host; "-" is standard input
	SHA256 string // of the whole file, in hexadecimal
}

// Inputs lists the host files that were read, sorted by path, with the hash of each at
// the time when it was read, or without hashes of files other than standard input. Files that were read only by copies of this file system,
// or only before this one was restored from a snapshot, are omitted. It fails if a host
// file was noticed to change while the guest could see it. Commit calls it before it
// changes anything.
func (fs *FS) Inputs(hashed bool) ([]Input, error) {
	h := fs.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return nil, h.failed
	}
	list := []Input{}
	for n := range fs.touched {
		if n.read {
			in := Input{Path: n.hostPath()}
			if hashed {
				in.SHA256 = n.contents.hash()
			}
			list = append(list, in)
		}
	}
	if h.stdin != nil {
		in, read, err := h.stdin.manifestInput()
		if err != nil {
			return nil, err
		}
		if read {
			list = append(list, in)
		}
	}
	slices.SortFunc(list, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(list), nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
