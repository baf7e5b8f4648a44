package vfs

import (
	"path/filepath"
	"slices"
	"strings"
)

// StdinPath takes the place of the path of standard input among the files that a run has read.
const StdinPath = "-"

// StoredFile is a regular file of the host as a run has read it.
type StoredFile struct {
	Path                  string // on the host
	Mode, UID, GID, Links uint32 // as of stat(2)
	// Accessed, Modified and Changed are the times that the guest sees, in ns since 1970.
	Accessed, Modified, Changed int64
	Data                        []byte
}

// EachRead calls f with the files of the host that were read, sorted by path and without their bytes, with their sizes,
// and a function that reads bytes as the guest has read them. It ends when f returns false. Standard input from a regular
// file that the guest has read comes first, all of it, with the path StdinPath.
func (fs *FS) EachRead(f func(file StoredFile, size int64, read func(p []byte, off int64) bool) bool) {
	if in := fs.host.stdin; in != nil && in.file != nil && in.used {
		if !f(StoredFile{Path: StdinPath}, in.size, func(p []byte, off int64) bool { return in.ReadAt(p, off) == 0 }) {
			return
		}
	}
	var list []*lower
	for n := range fs.touched {
		if n.read {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *lower) int { return strings.Compare(a.hostPath(), b.hostPath()) })
	for _, n := range list {
		a := &n.attr
		file := StoredFile{
			Path: n.hostPath(), Mode: a.mode, UID: a.uid, GID: a.gid, Links: a.nlink,
			Accessed: a.atime, Modified: a.mtime, Changed: a.ctime,
		}
		if !f(file, a.size, func(p []byte, off int64) bool { return n.ReadAt(p, off) == 0 }) {
			return
		}
	}
}

// store has files take the place of those of the host.
func (h *Host) store(files []StoredFile) {
	if len(files) > 0 {
		h.stored = map[string]*lower{}
	}
	for i, f := range files {
		h.stored[f.Path] = &lower{
			host: h, name: filepath.Base(f.Path),
			attr: lowerAttr{
				mode: f.Mode, uid: f.UID, gid: f.GID, nlink: f.Links, size: int64(len(f.Data)),
				atime: f.Accessed, mtime: f.Modified, ctime: f.Changed,
				id: hostID{^uint64(0), uint64(i)}, stamp: f.Modified,
			},
			contents: &contents{size: int64(len(f.Data)), kept: f.Data},
		}
	}
}

// storedFile is the file of a name in a folder that takes the place of the host's, or nil. The lock is held.
func (h *Host) storedFile(in *lower, name string) *lower {
	if len(h.stored) == 0 {
		return nil
	}
	c := h.stored[joinHost(in.hostPath(), name)]
	if c != nil {
		c.parent = in
	}
	return c
}

// storedNames are the names in a folder of files that take the place of the host's.
func (h *Host) storedNames(in *lower) (names []string) {
	for path := range h.stored {
		if filepath.Dir(path) == filepath.Clean(in.hostPath()) {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
