package vfs

import (
	"io"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// hostID identifies a file of the host; hard links have the same.
type hostID struct{ dev, ino uint64 }

// lowerAttr is the attributes of a lower node.
type lowerAttr struct {
	mode, uid, gid, nlink uint32
	size                  int64
	rdev                  uint64
	atime, mtime, ctime   int64 // ns since 1970, as the guest sees them
	id                    hostID
	stamp                 int64 // the host's modification time, to notice changes
}

// matches reports whether st can be of the file or link that a describes. The size of a
// folder may change without its names.
func (a *lowerAttr) matches(st *unix.Stat_t) bool {
	if (hostID{st.Dev, st.Ino}) != a.id || st.Mode&unix.S_IFMT != a.mode&unix.S_IFMT {
		return false
	}
	switch a.mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFLNK:
		return st.Size == a.size && unix.TimespecToNsec(st.Mtim) == a.stamp
	}
	return true
}

// lower is a file of the tree that the guest finds at the start of a run: one of the
// host, or a folder that was added above visible ones. It never changes; it caches
// everything that it has read from the host.
//
// Overrides are the names that New added over those of the host: mounts, visible paths
// and the folders above them.
type lower struct {
	host      *Host
	parent    *lower // the host folder it is in; nil for a root and for synthetic ones
	name      string // in parent; for a root its host path
	fd        int    // of a root
	attr      lowerAttr
	synthetic bool
	overrides map[string]*lower
	mount     *mountPoint // set if this is the top of a mount

	children map[string]*lower // found so far
	names    []string          // all names, once listed
	listed   bool
	target   string
	linkRead bool
	contents *contents // of a regular file, once it was opened or its bytes were asked for
	read     bool      // its bytes were asked for
}

// SharedInSnapshot marks that copies of a file system share the lower tree.
func (n *lower) SharedInSnapshot() {}

func (n *lower) isDir() bool     { return n.attr.mode&unix.S_IFMT == unix.S_IFDIR }
func (n *lower) isSymlink() bool { return n.attr.mode&unix.S_IFMT == unix.S_IFLNK }

// hostPath is the path on the host.
func (n *lower) hostPath() string {
	if n.parent == nil {
		return n.name
	}
	return joinHost(n.parent.hostPath(), n.name)
}

// findChild finds a name in a folder; nil without an error means that it is absent. ENOTDIR: n
// is not a folder.
func (n *lower) findChild(name string) (*lower, unix.Errno) {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	return n.findChildLocked(name)
}

func (n *lower) findChildLocked(name string) (*lower, unix.Errno) {
	if c, ok := n.overrides[name]; ok {
		return c, 0
	}
	if n.synthetic || n.host.isHidden(n, name) {
		return nil, 0
	}
	if !n.isDir() {
		return nil, unix.ENOTDIR
	}
	if c, ok := n.children[name]; ok {
		return c, 0
	}
	if c := n.host.storedFile(n, name); c != nil {
		return c, 0
	}
	folder := n.host.storedFolder(n)
	had := false
	if folder != nil {
		if _, had = folder.children[name]; !had {
			return nil, 0
		}
	}
	dir, errno := n.host.folderHandle(n)
	if errno != 0 {
		return nil, errno
	}
	c := &lower{host: n.host, parent: n, name: name}
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err == nil:
		c.attr = n.host.visibleAttr(&st)
	case err == unix.ENOENT && had:
	case err == unix.ENOENT:
		return nil, 0
	default:
		return nil, errnoOf(err)
	}
	n.host.restore(c, folder)
	if n.children == nil {
		n.children = map[string]*lower{}
	}
	n.children[name] = c
	return c, 0
}

// listNames returns all names in a folder, sorted. The caller must not change it.
func (n *lower) listNames() ([]string, unix.Errno) {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	if n.listed {
		return n.names, 0
	}
	var names []string
	if folder := n.host.storedFolder(n); folder != nil {
		names = slices.Collect(maps.Keys(folder.children))
	} else if !n.synthetic {
		var errno unix.Errno
		if names, errno = n.host.folderNames(n); errno != 0 {
			return nil, errno
		}
		names = slices.DeleteFunc(names, func(name string) bool { return n.host.isHidden(n, name) })
	}
	for name := range n.overrides {
		names = append(names, name)
	}
	if !n.synthetic {
		names = append(names, n.host.storedNames(n)...)
	}
	slices.Sort(names)
	n.names, n.listed = slices.Compact(names), true
	return n.names, 0
}

// linkText returns the text of a symbolic link.
func (n *lower) linkText() (string, unix.Errno) {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	if n.linkRead {
		return n.target, 0
	}
	fd, errno := n.host.openVerified(n, unix.O_PATH)
	if errno != 0 {
		return "", errno
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, unix.PathMax)
	got, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", n.host.noteFailure(n, errOtherBytes)
	}
	n.target, n.linkRead = string(buf[:got]), true
	return n.target, 0
}

// openContents makes sure that a regular file can be read, and keeps its bytes if there are not
// too many.
func (n *lower) openContents() unix.Errno {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	if n.isKept() {
		return 0
	}
	fd, errno := n.host.fileHandle(n)
	if errno != 0 || n.contents != nil || n.attr.size > min(maxKeptFile, n.host.keep) {
		return errno
	}
	if errno := n.readContents(fd, keepContents); errno != 0 {
		return errno
	}
	n.host.keep -= n.attr.size
	n.host.files.removeHandle(n)
	return 0
}

// isKept reports whether the host's file is not needed any more.
func (n *lower) isKept() bool { return n.contents != nil && n.contents.kept != nil }

// ReadAt fills p with bytes of a regular file; it is the source of memory objects. The
// first call makes the file an input of the run with a known hash: the file was kept,
// or is read as a whole.
func (n *lower) ReadAt(p []byte, off int64) unix.Errno {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	if n.isKept() {
		n.read = true
		_ = n.contents.readAt(nil, p, off)
		return 0
	}
	fd, errno := n.host.fileHandle(n)
	if errno != 0 {
		return unix.EIO
	}
	if n.contents == nil {
		if errno := n.readContents(fd, readContents); errno != 0 {
			return errno
		}
	}
	n.read = true
	if err := n.contents.readAt(hostFile(fd), p, off); err != nil {
		return n.host.noteFailure(n, err)
	}
	return 0
}

// readContents reads the whole file. A file that is written meanwhile is refused: part
// of its bytes would be old and part new.
func (n *lower) readContents(fd int, all func(io.ReaderAt, int64) (*contents, error)) unix.Errno {
	read, err := all(hostFile(fd), n.attr.size)
	if err != nil {
		return n.host.noteFailure(n, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || !n.attr.matches(&st) {
		return n.host.noteFailure(n, errOtherBytes)
	}
	n.contents = read
	return 0
}

// noteRead makes an empty file an input, of which no bytes can be read.
func (n *lower) noteRead() {
	n.host.mu.Lock()
	defer n.host.mu.Unlock()
	if n.read = true; n.contents == nil {
		n.contents, _ = readContents(nil, 0)
	}
}

// hostFile reads from a descriptor.
type hostFile int

// ReadAt implements io.ReaderAt.
func (f hostFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		got, err := unix.Pread(int(f), p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, err
		case got == 0:
			return done, io.EOF
		default:
			done += got
		}
	}
	return done, nil
}
