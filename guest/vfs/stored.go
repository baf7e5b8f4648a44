package vfs

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errs"
)

var errListing = errs.Define("stored-folder-unreadable",
	"the trace's listing of the folder {folder} cannot be read",
	"The trace was put together by something else than heddle record.",
	"Record the run again.")

// StdinPath takes the place of the path of standard input among the files that a run has read.
const StdinPath = "-"

// StoredFile is a regular file of the host as a run has read it, or a folder whose names the run has listed.
type StoredFile struct {
	Path                  string // on the host
	Mode, UID, GID, Links uint32 // as of stat(2)
	// Accessed, Modified and Changed are the times that the guest sees, in ns since 1970.
	Accessed, Modified, Changed int64
	// Data are the bytes of a file. Of a folder it is its own size and a list of its names with their attributes.
	Data []byte
}

// IsFolder reports whether it is a folder.
func (f *StoredFile) IsFolder() bool { return f.Mode&unix.S_IFMT == unix.S_IFDIR }

// EachRead calls f with the files of the host that were read and the folders that were listed, without their bytes, with
// the numbers of those, and a function that reads bytes as the guest has read them. It ends when f returns false. Folders
// come first, then standard input from a regular file that the guest has read, all of it, with the path StdinPath, then
// files, each sorted by path.
func (fs *FS) EachRead(f func(file StoredFile, size int64, read func(p []byte, off int64) bool) bool) {
	var folders, files []*lower
	for n := range fs.touched {
		if n.isDir() {
			folders = append(folders, n)
		} else if n.read {
			files = append(files, n)
		}
	}
	byPath := func(a, b *lower) int { return strings.Compare(a.hostPath(), b.hostPath()) }
	slices.SortFunc(folders, byPath)
	slices.SortFunc(files, byPath)
	for _, n := range folders {
		text := n.listing()
		if !f(n.stored(), int64(len(text)), func(p []byte, off int64) bool { return copy(p, text[off:]) == len(p) }) {
			return
		}
	}
	if in := fs.host.stdin; in != nil && in.file != nil && in.used {
		if !f(StoredFile{Path: StdinPath}, in.size, func(p []byte, off int64) bool { return in.ReadAt(p, off) == 0 }) {
			return
		}
	}
	for _, n := range files {
		if !f(n.stored(), n.attr.size, func(p []byte, off int64) bool { return n.ReadAt(p, off) == 0 }) {
			return
		}
	}
}

func (n *lower) stored() StoredFile {
	a := &n.attr
	return StoredFile{
		Path: n.hostPath(), Mode: a.mode, UID: a.uid, GID: a.gid, Links: a.nlink,
		Accessed: a.atime, Modified: a.mtime, Changed: a.ctime,
	}
}

// listing is the form of a folder's names in StoredFile.Data: the size of the folder, and for each name that the host has
// its length, the name and the attributes, all numbers as varints.
func (n *lower) listing() []byte {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	text := binary.AppendUvarint(nil, uint64(n.attr.size))
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		if _, listed := slices.BinarySearch(n.names, name); listed {
			text = binary.AppendUvarint(text, uint64(len(name)))
			text = append(text, name...)
			a := &n.children[name].attr
			for _, v := range []uint64{uint64(a.mode), uint64(a.uid), uint64(a.gid), uint64(a.nlink), uint64(a.size), a.rdev, uint64(a.atime), uint64(a.mtime), uint64(a.ctime)} {
				text = binary.AppendUvarint(text, v)
			}
		}
	}
	return text
}

// storedFolder is a folder as a run has listed it, with the attributes of what it had.
type storedFolder struct {
	attr     lowerAttr
	children map[string]lowerAttr
}

// readFolder is the inverse of lower.listing.
func readFolder(f *StoredFile) (*storedFolder, error) {
	text, whole := f.Data, true
	number := func() uint64 {
		v, n := binary.Uvarint(text)
		whole = whole && n > 0
		text = text[max(n, 0):]
		return v
	}
	d := &storedFolder{attr: f.attributes(int64(number())), children: map[string]lowerAttr{}}
	for len(text) > 0 && whole {
		length := number()
		if !whole || length > uint64(len(text)) {
			return nil, errListing.New(f.Path)
		}
		name := string(text[:length])
		text = text[length:]
		d.children[name] = lowerAttr{
			mode: uint32(number()), uid: uint32(number()), gid: uint32(number()), nlink: uint32(number()), size: int64(number()),
			rdev: number(), atime: int64(number()), mtime: int64(number()), ctime: int64(number()),
		}
	}
	if !whole {
		return nil, errListing.New(f.Path)
	}
	return d, nil
}

func (f *StoredFile) attributes(size int64) lowerAttr {
	return lowerAttr{
		mode: f.Mode, uid: f.UID, gid: f.GID, nlink: f.Links, size: size,
		atime: f.Accessed, mtime: f.Modified, ctime: f.Changed, stamp: f.Modified,
	}
}

// store has files and folders take the place of those of the host.
func (h *Host) store(files []StoredFile) error {
	h.stored, h.folders = map[string]*lower{}, map[string]*storedFolder{}
	for i := range files {
		f := &files[i]
		if f.IsFolder() {
			d, err := readFolder(f)
			if err != nil {
				return err
			}
			h.folders[f.Path] = d
			continue
		}
		n := &lower{
			host: h, name: filepath.Base(f.Path), attr: f.attributes(int64(len(f.Data))),
			contents: &contents{size: int64(len(f.Data)), kept: f.Data},
		}
		n.attr.id = hostID{^uint64(0), uint64(i)}
		h.stored[f.Path] = n
	}
	return nil
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

// storedFolder is the folder that takes the place of one of the host, or nil. The lock is held.
func (h *Host) storedFolder(n *lower) *storedFolder {
	if len(h.folders) == 0 {
		return nil
	}
	return h.folders[filepath.Clean(n.hostPath())]
}

// restore gives a node of the host the attributes that it had: those of a stored folder, or of a name in the folder that it
// is in, if that is stored. The host's identity remains, unless it is something else now.
func (h *Host) restore(n *lower, in *storedFolder) {
	was, known := lowerAttr{}, false
	if in != nil {
		was, known = in.children[n.name]
	}
	if d := h.storedFolder(n); d != nil {
		was, known = d.attr, true
	}
	if !known {
		return
	}
	if now := n.attr; now.mode&unix.S_IFMT == was.mode&unix.S_IFMT {
		was.id, was.stamp = now.id, now.stamp
	} else {
		was.id = hostID{^uint64(0), n.numberByName()}
	}
	n.attr = was
}
